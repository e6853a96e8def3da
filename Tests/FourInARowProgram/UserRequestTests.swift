import Testing

@testable import fourinarow

struct WishTests {
    @Test("Requests for the bot differ by their level")
    func levels() { #expect(UserRequest.playBot(level: 1) != .playBot(level: 2)) }
}
