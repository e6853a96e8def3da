import NighCompatibility

/// Lets a person choose a device nearby and connects a session to it. Both persons open a picker; one of them chooses
/// the other, who accepts or declines.
///
/// It has no user interface of its own: ``NighGameKit/presenter`` shows it. Use it on the main queue only.
open class GKPeerPickerController: NSObject {
    /// How long a chosen peer has to answer.
    private static let timeout: TimeInterval = 30

    /// The kinds of connections that the person can choose from. With one kind, there is nothing to choose.
    open var connectionTypesMask: GKPeerPickerConnectionType = .nearby
    /// The object that is notified of the person's choices.
    open weak var delegate: (any GKPeerPickerControllerDelegate)?
    /// Whether the picker is shown.
    open var isVisible: Bool { shown != nil }

    private var dialog: PeerPickerDialog?
    /// This picker while it is shown, because many programs do not keep it.
    private var shown: GKPeerPickerController?
    private var session: GKSession?
    /// Whether the program had made the session available before the picker did.
    private var wasAvailable = false

    /// Shows the picker. If there is no presenter, it is cancelled at once.
    open func show() {
        guard !isVisible else { return }
        guard NighGameKit.presenter != nil else {
            Notice.say("there is no NighGameKit.presenter to show the peer picker", by: NighGameKit.module)
            delegate?.peerPickerControllerDidCancel(self)
            return
        }
        shown = self
        dialog = PeerPickerDialog(.choosingConnection, of: self)
        if connectionTypesMask.contains([.online, .nearby]) {
            present()
        } else {
            choose(connectionTypesMask.contains(.online) ? .online : .nearby)
        }
    }

    /// Takes the picker away. The session stays connected to the peer that was chosen; otherwise everything under way
    /// is withdrawn.
    open func dismiss() {
        guard isVisible, let dialog else { return }
        shown = nil
        if let session {
            switch dialog.stage {
            case .waiting(let peer): session.cancelConnect(toPeer: peer.id)
            case .asked(let peer): session.denyConnection(fromPeer: peer.id)
            case .choosingConnection, .choosingPeer, .connected: break
            }
        }
        release()
        self.dialog = nil
        NighGameKit.presenter?.dismiss(dialog)
    }

    /// Gives the session back to the program.
    private func release() {
        session?.observer = nil
        session?.isAvailable = wasAvailable
        session = nil
    }

    private func present() {
        guard let dialog else { return }
        NighGameKit.presenter?.show(dialog)
    }

    // MARK: Actions of the person

    func cancel() {
        guard isVisible else { return }
        dismiss()
        delegate?.peerPickerControllerDidCancel(self)
    }

    func choose(_ type: GKPeerPickerConnectionType) {
        guard case .choosingConnection? = dialog?.stage else { return }
        delegate?.peerPickerController(self, didSelect: type)
        // The delegate may have dismissed the picker.
        guard isVisible, let dialog, type == .nearby else { return }
        let session =
            delegate?.peerPickerController(self, sessionFor: type)
            ?? GKSession(sessionID: nil, displayName: nil, sessionMode: .peer)
        guard let session else { return cancel() }
        self.session = session
        wasAvailable = session.isAvailable
        session.observer = self
        session.isAvailable = true
        dialog.stage = .choosingPeer(peers)
        present()
    }

    func invite(_ peer: PeerPickerDialog.Peer) {
        guard let dialog, let session, case .choosingPeer = dialog.stage else { return }
        dialog.failure = nil
        dialog.stage = .waiting(for: peer)
        present()
        session.connect(toPeer: peer.id, withTimeout: Self.timeout)
    }

    func answer(accepting: Bool) {
        guard let dialog, let session, case .asked(let peer) = dialog.stage else { return }
        dialog.stage = accepting ? .waiting(for: peer) : .choosingPeer(peers)
        dialog.failure = nil
        present()
        guard accepting else { return session.denyConnection(fromPeer: peer.id) }
        do { try session.acceptConnection(fromPeer: peer.id) } catch { failed(peer.id, error) }
    }

    private var peers: [PeerPickerDialog.Peer] {
        guard let session else { return [] }
        return session.table.peers(in: .stateAvailable).map(peer).sorted {
            ($0.name, $0.id) < ($1.name, $1.id)
        }
    }

    private func peer(_ id: String) -> PeerPickerDialog.Peer {
        PeerPickerDialog.Peer(id: id, name: session?.displayName(forPeer: id) ?? id)
    }

    // MARK: Events of the session

    func changed(_ id: String, _ state: GKPeerConnectionState) {
        guard let dialog, let session else { return }
        if state == .stateConnected {
            dialog.stage = .connected(to: peer(id))
            release()
            present()
            delegate?.peerPickerController(self, didConnectPeer: id, to: session)
        } else if case .choosingPeer = dialog.stage {
            dialog.stage = .choosingPeer(peers)
            present()
        }
    }

    func requested(by id: String) {
        guard let dialog, let session else { return }
        guard case .choosingPeer = dialog.stage else { return session.denyConnection(fromPeer: id) }
        dialog.stage = .asked(by: peer(id))
        dialog.failure = nil
        present()
    }

    func failed(_ id: String, _ error: any Error) {
        guard let dialog else { return }
        switch dialog.stage {
        case .waiting(let peer) where peer.id == id, .asked(let peer) where peer.id == id:
            dialog.failure = error.localizedDescription
            dialog.stage = .choosingPeer(peers)
            present()
        default: break
        }
    }
}
