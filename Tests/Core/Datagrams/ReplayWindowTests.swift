import NighTestKit
import Testing

@testable import NighCore

@Suite("The window of packet numbers") struct ReplayWindowTests {
    @Test("admits each number once, whatever the order, as a set of the newest 1,024 does")
    func reference() {
        for seed in 0..<20 as Range<UInt64> {
            var random = SeededGenerator(seed: seed)
            var window = ReplayWindow()
            var seen: Set<UInt64> = []
            var end: UInt64 = 0
            for _ in 0..<5_000 {
                let reach = UInt64.random(in: 0..<(random.oneIn(50) ? 3_000 : 40), using: &random)
                let number = random.oneIn(3) ? end + reach : end - min(end, reach)
                let isNew = number >= end || (end - number <= 1_024 && !seen.contains(number))
                #expect(window.admits(number) == isNew)
                #expect(window.isDuplicate(number) == (number < end && end - number <= 1_024 && !isNew))
                guard isNew else { continue }
                window.note(number)
                seen.insert(number)
                end = max(end, number + 1)
            }
        }
    }
}
