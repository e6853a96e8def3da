import GameKit

// A chat of two that begins with a peer picker: start `PeerPicker Puma` and `PeerPicker Lynx`, choose the one in the
// other, and accept. Each line that one writes is then shown to the other, until one of them ends.

/// Shows a picker in a terminal: a list with numbers, a question, and one line that tells how it stands.
@MainActor final class TerminalPicker: @MainActor PeerPickerPresenter {
    private var dialog: PeerPickerDialog?
    private let isTerminal = isatty(STDOUT_FILENO) == 1

    func show(_ dialog: PeerPickerDialog) {
        self.dialog = dialog
        // Draws over what was shown before.
        if isTerminal { print("\u{1B}[H\u{1B}[2J", terminator: "") }
        if let failure = dialog.failure { print(tinted("31", failure)) }
        switch dialog.stage {
        case .choosingConnection: print("1 Nearby\n2 Internet\n\(hint("number, or q to close"))")
        case .choosingPeer([]): print("Looking for others …  \(hint("q to close"))")
        case .choosingPeer(let peers):
            for (number, peer) in peers.enumerated() { print("\(tinted("1", "\(number + 1)")) \(peer.name)") }
            print(hint("number, or q to close"))
        case .waiting(let peer): print("Waiting for \(tinted("1", peer.name)) …  \(hint("q to close"))")
        case .asked(let peer): print("\(tinted("1", peer.name)) wants to connect. \(hint("y or n"))")
        case .connected(let peer): print("Connected to \(tinted("32", peer.name)).")
        }
    }

    func dismiss(_ dialog: PeerPickerDialog) { self.dialog = nil }

    /// Answers the question that is shown. Returns false if there is none.
    func typed(_ line: String) -> Bool {
        guard let dialog else { return false }
        switch (dialog.stage, line) {
        case (_, "q"): dialog.cancel()
        case (.choosingConnection, "1"): dialog.choose(.nearby)
        case (.choosingConnection, "2"): dialog.choose(.online)
        case (.asked, "y"): dialog.accept()
        case (.asked, "n"): dialog.decline()
        case (.choosingPeer(let peers), _):
            if let number = Int(line), peers.indices ~= number - 1 { dialog.invite(peers[number - 1]) }
        default: break
        }
        return true
    }

    private func tinted(_ code: String, _ text: String) -> String {
        isTerminal ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }

    private func hint(_ text: String) -> String { tinted("2", "[\(text)]") }
}

@MainActor
final class Chat: NSObject, @MainActor GKPeerPickerControllerDelegate, @MainActor GKSessionDelegate,
    @MainActor GKSessionDataReceiver
{
    private let picker = GKPeerPickerController()
    private let session: GKSession

    init(_ name: String) {
        session = GKSession(sessionID: "peerpicker", displayName: name, sessionMode: .peer)
        super.init()
        picker.delegate = self
        picker.show()
    }

    func say(_ line: String) { try? session.sendData(toAllPeers: Data(line.utf8), with: .reliable) }

    /// Ends the program, after the other has been notified.
    func end() {
        if session.peers(with: .stateConnected).isEmpty { exit(0) }
        session.disconnectFromAllPeers()
    }

    func peerPickerController(
        _ picker: GKPeerPickerController, sessionFor type: GKPeerPickerConnectionType
    ) -> GKSession { session }

    func peerPickerController(
        _ picker: GKPeerPickerController, didConnectPeer peer: String, to session: GKSession
    ) {
        session.delegate = self
        session.setDataReceiveHandler(self, withContext: nil)
        picker.dismiss()
    }

    func peerPickerController(_ picker: GKPeerPickerController, didSelect type: GKPeerPickerConnectionType) {
        guard type == .online else { return }
        print("this chat has no server on the Internet")
        exit(1)
    }

    func peerPickerControllerDidCancel(_ picker: GKPeerPickerController) { exit(0) }

    func session(_ session: GKSession, peer: String, didChange state: GKPeerConnectionState) {
        if state == .stateDisconnected { exit(0) }
    }

    func receiveData(
        _ data: Data, fromPeer peer: String, inSession session: GKSession, context: UnsafeMutableRawPointer?
    ) {
        print("\(session.displayName(forPeer: peer) ?? peer): \(String(decoding: data, as: UTF8.self))")
    }
}

let screen = TerminalPicker()
NighGameKit.presenter = screen
let chat = Chat(CommandLine.arguments.dropFirst().first ?? "somebody")
Thread.detachNewThread {
    while let line = readLine() { DispatchQueue.main.async { if !screen.typed(line) { chat.say(line) } } }
    DispatchQueue.main.async { chat.end() }
}
RunLoop.main.run()
