import Synchronization

/// The last mark that was given out. It begins at a random number, so that no two servers, and no two runs of a server,
/// give out the same marks.
private let lastMark = Atomic<Int64>(.random(in: .min ... .max))

/// A number that no other request has. When the server runs a statement again for the same request, PostgreSQL
/// recognises the request by this mark. Another request with the same token or proof has another mark. A mark is no
/// secret: no client can send one.
func nextRequestMark() -> Int64 { lastMark.wrappingAdd(1, ordering: .relaxed).newValue }
