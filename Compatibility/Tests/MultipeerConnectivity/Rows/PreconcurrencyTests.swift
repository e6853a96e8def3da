import Testing

@preconcurrency import MultipeerConnectivity

// Compiling without a warning is the test: it is so with Apple's framework.

private let ownPeer = MCPeerID(displayName: "Puma")

private struct Sighting: Sendable {
    let peer: MCPeerID
    let session: MCSession
}

@Suite("A program in Swift 6 mode") struct PreconcurrencyTests {
    @Test("passes peers and sessions between its actors behind a @preconcurrency import")
    func passed() async {
        _ = transportsAreChosen
        let sighting = Sighting(peer: ownPeer, session: MCSession(peer: ownPeer))
        let name = await Task { @MainActor in sighting.session.myPeerID.displayName }.value
        #expect(name == "Puma" && sighting.peer == ownPeer)
    }
}
