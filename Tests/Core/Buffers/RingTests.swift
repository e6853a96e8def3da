import Testing

@testable import NighCore

@Suite struct RingTests {
    @Test(arguments: 0..<20 as Range<UInt64>)
    func aRingBehavesLikeAnArray(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var ring = Ring<Int>()
        var reference: [Int] = []
        // Seeds differ in how often they take, so that some rings stay small and wrap around, and some grow large.
        let taking = Int(seed % 4) + 1
        for step in 0..<3_000 {
            switch Int.random(in: 0..<4 + 2 * taking, using: &random) {
            case 0, 1:
                ring.append(step)
                reference.append(step)
            case 2:
                ring.prepend(step)
                reference.insert(step, at: 0)
            case 3:
                guard let index = reference.indices.randomElement(using: &random) else { continue }
                ring[index] = -step
                reference[index] = -step
            case let other where other.isMultiple(of: 2):
                #expect(ring.popFirst() == (reference.isEmpty ? nil : reference.removeFirst()))
            default:
                #expect(ring.popLast() == reference.popLast())
            }
            #expect(ring.count == reference.count && ring.isEmpty == reference.isEmpty)
            #expect(ring.first == reference.first)
            if step.isMultiple(of: 50) { #expect((0..<ring.count).map { ring[$0] } == reference) }
        }
        ring.removeAll()
        #expect(ring.isEmpty && ring.popFirst() == nil && ring.popLast() == nil && ring.first == nil)
    }

    @Test func itemsThatLeaveTheRingAreReleased() {
        final class Witness {}
        var ring = Ring<Witness>()
        weak var front: Witness?
        weak var back: Witness?
        do {
            let witnesses = [Witness(), Witness()]
            front = witnesses[0]
            back = witnesses[1]
            witnesses.forEach { ring.append($0) }
        }
        ring.popFirst()
        #expect(front == nil && back != nil)
        ring.popLast()
        #expect(back == nil)
    }

    @Test func aCopyKeepsItsOwnContent() {
        var ring = Ring<Int>()
        for number in 0..<20 { ring.append(number) }
        var copy = ring
        copy.popFirst()
        copy.append(99)
        #expect(ring.first == 0 && ring.count == 20 && ring[19] == 19)
        #expect(copy.first == 1 && copy.count == 20 && copy[19] == 99)
    }
}
