import GameKit
import Testing

/// A program whose methods have the types of the first years.
private final class OlderProgram: NSObject, GKSessionDelegate, GKPeerPickerControllerDelegate {
    var calls: [String] = []
    let given = GKSession(sessionID: "given", displayName: "Puma", sessionMode: .peer)

    func session(_ session: GKSession!, peer peerID: String!, didChange state: GKPeerConnectionState) {
        calls.append("state")
    }

    func session(_ session: GKSession!, didReceiveConnectionRequestFromPeer peerID: String!) {
        calls.append("request")
    }

    func session(
        _ session: GKSession!, connectionWithPeerFailed peerID: String!, withError error: (any Error)!
    ) { calls.append("no connection") }

    func session(_ session: GKSession!, didFailWithError error: (any Error)!) { calls.append("failure") }

    func peerPickerController(
        _ picker: GKPeerPickerController!, didSelect type: GKPeerPickerConnectionType
    ) { calls.append("kind") }

    func peerPickerController(
        _ picker: GKPeerPickerController!, sessionFor type: GKPeerPickerConnectionType
    ) -> GKSession! { given }

    func peerPickerController(
        _ picker: GKPeerPickerController!, didConnectPeer peerID: String!, to session: GKSession!
    ) { calls.append("peer") }

    func peerPickerControllerDidCancel(_ picker: GKPeerPickerController!) { calls.append("cancelled") }
}

/// A program whose method has a type that Swift does not take for the delegate's.
private final class NearMiss: NSObject, GKSessionDelegate {
    func session(_ session: GKSession, didFailWithError error: NSError) {}
}

@Suite("A delegate in the form of older programs") @MainActor struct OlderProgramTests {
    private let session = GKSession(sessionID: "older", displayName: "Puma", sessionMode: .peer)!
    private let older = OlderProgram()

    @Test("hears everything of its session")
    func ofSession() {
        let delegate: any GKSessionDelegate = older
        let error = GKSessionError(.timedOutError)
        delegate.session(session, peer: "x", didChange: .stateAvailable)
        delegate.session(session, didReceiveConnectionRequestFromPeer: "x")
        delegate.session(session, connectionWithPeerFailed: "x", withError: error)
        delegate.session(session, didFailWithError: error)
        #expect(older.calls == ["state", "request", "no connection", "failure"])
    }

    @Test("hears everything of its picker, and gives it its session")
    func ofPicker() {
        let delegate: any GKPeerPickerControllerDelegate = older
        let picker = GKPeerPickerController()
        delegate.peerPickerController(picker, didSelect: .nearby)
        #expect(delegate.peerPickerController(picker, sessionFor: .nearby) === older.given)
        delegate.peerPickerController(picker, didConnectPeer: "x", to: session)
        delegate.peerPickerControllerDidCancel(picker)
        #expect(older.calls == ["kind", "peer", "cancelled"])
    }

    @Test("hears on standard error, once, of each method that has other types")
    func nearMiss() async throws {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            let session = GKSession(sessionID: "near", displayName: "Puma", sessionMode: .peer)!
            let delegate: any GKSessionDelegate = NearMiss()
            for _ in 0..<2 {
                delegate.session(session, didFailWithError: GKSessionError(.timedOutError))
                delegate.session(session, didReceiveConnectionRequestFromPeer: "x")
            }
        }
        let said = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(said.split(separator: "\n").count { $0.contains("NearMiss has no session(_:") } == 2)
        #expect(
            said.contains("didFailWithError:) with exactly the types of GameKit, so it does not hear this: "))
        #expect(said.contains("didReceiveConnectionRequestFromPeer:)"))
    }
}
