import Synchronization

/// Counts from a random number, so that two servers, and two runs of one, do not meet.
private let lastMark = Atomic<Int64>(.random(in: .min ... .max))

/// A number that no other request has. A statement that is run again for a request is told by it from another request's
/// with the same token or proof; that it could be guessed helps nobody who has neither.
func nextRequestMark() -> Int64 { lastMark.wrappingAdd(1, ordering: .relaxed).newValue }
