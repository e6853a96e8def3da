import Testing

@preconcurrency import GameKit

// Compiling without a warning is the test: it is so with Apple's framework.

private struct Seat: Sendable {
    let session: GKSession
}

@Suite("A program in Swift 6 mode") struct PreconcurrencyTests {
    @Test("passes sessions between its actors behind a @preconcurrency import")
    func passed() async {
        let seat = Seat(session: GKSession(sessionID: "seat", displayName: "Puma", sessionMode: .peer))
        let name = await Task { @MainActor in seat.session.displayName }.value
        #expect(name == "Puma")
    }
}
