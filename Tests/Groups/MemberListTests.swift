import Testing

@testable import NighGroups

@Suite("The members of a group") struct MemberListTests {
    /// Counts how often members are compared. It is an object of one test, so tests that run beside it do not count.
    private final class Steps {
        var count = 0
    }

    private struct Member: Hashable, Comparable {
        let number: Int
        let steps: Steps

        static func < (left: Member, right: Member) -> Bool {
            left.steps.count += 1
            return left.number < right.number
        }

        static func == (left: Member, right: Member) -> Bool { left.number == right.number }

        func hash(into hasher: inout Hasher) { hasher.combine(number) }
    }

    @Test("are in order, each once")
    func order() {
        let steps = Steps()
        var list = MemberList<Member>()
        #expect(list.sorted().isEmpty)
        for number in [3, 1, 2, 1] { list.insert(Member(number: number, steps: steps)) }
        #expect(list.sorted().map(\.number) == [1, 2, 3])
        list.remove(Member(number: 2, steps: steps))
        list.remove(Member(number: 7, steps: steps))
        #expect(list.sorted().map(\.number) == [1, 3])
    }

    @Test("are not compared when one comes or goes, and once when somebody asks for all")
    func steps() {
        let steps = Steps()
        var list = MemberList<Member>()
        for number in 0..<1_000 { list.insert(Member(number: number, steps: steps)) }
        #expect(steps.count == 0)
        _ = list.sorted()
        let once = steps.count
        #expect(once > 0)
        for _ in 0..<100 { _ = list.sorted() }
        for number in 0..<500 { list.remove(Member(number: number, steps: steps)) }
        #expect(steps.count == once)
    }
}
