import Testing

@testable import fourinarow

struct WishTests {
    @Test("Levels tell one wish for the machine from another")
    func levels() { #expect(Wish.playBot(level: 1) != .playBot(level: 2)) }
}
