import Persistence
import Testing

@testable import Grants

@Suite("Words of proofs of a number")
struct PossessionEvaluationTests {
    @Test func `a state that has passed is over, and one that is over ends the wait`() {
        for state in PossessionState.allCases {
            #expect(!state.isPassed || state.isOver, "\(state)")
            #expect(!state.isOver || state.endsWait, "\(state)")
        }
    }

    @Test func `each reason has a text of its own`() {
        let texts = PossessionReason.allCases.map(\.text)
        #expect(Set(texts).count == texts.count)
        #expect(texts.allSatisfy { $0.hasSuffix(".") && !$0.contains("\"") })
    }
}
