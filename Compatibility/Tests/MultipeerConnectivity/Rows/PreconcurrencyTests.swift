import Testing

@preconcurrency import MultipeerConnectivity

// What a program in Swift 6 mode may do behind this import, here as with Apple's framework. It compiles without a
// warning, which is what is tested.

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
