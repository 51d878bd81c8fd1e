/// Whose turn it is to poll the database, among requests that are held. Those whose topic has changed come first,
/// then the others in the order in which they came. A request that has ended keeps its place until
/// its turn comes.
struct PollQueue {
    /// Connections that held requests use at one time, at most.
    static let pollsAtOnce = 4

    private struct Line {
        var numbers: [UInt64] = []
        var passed = 0

        mutating func next() -> UInt64? {
            guard passed < numbers.count else { return nil }
            passed += 1
            defer { if passed == numbers.count { (numbers, passed) = ([], 0) } }
            return numbers[passed - 1]
        }
    }

    private var free = pollsAtOnce
    private var urgent = Line()
    private var others = Line()

    /// Takes a free turn. - Returns: `false` when there is none.
    mutating func takesTurn() -> Bool {
        guard free > 0 else { return false }
        free -= 1
        return true
    }

    mutating func append(_ number: UInt64, isUrgent: Bool) {
        if isUrgent { urgent.numbers.append(number) } else { others.numbers.append(number) }
    }

    /// A turn has ended. - Returns: the request that has it now; `nil`: it is free.
    mutating func next() -> UInt64? {
        if let number = urgent.next() ?? others.next() { return number }
        free += 1
        return nil
    }
}
