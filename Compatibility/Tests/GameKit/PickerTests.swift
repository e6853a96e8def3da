import GameKit
import Testing

/// The picker, with a presenter in place of a window. There is one presenter for the process, so these run one after
/// the other.
@Suite("A GKPeerPickerController", .serialized, .timeLimit(.minutes(15))) @MainActor final class PickerTests {
    /// Records the dialogs that are shown.
    private final class Screen: PeerPickerPresenter {
        var dialogs: [PeerPickerDialog] = []
        var dismissed = 0
        var onShow: (PeerPickerDialog) -> Void = { _ in }

        func show(_ dialog: PeerPickerDialog) {
            if !dialogs.contains(where: { $0 === dialog }) { dialogs.append(dialog) }
            onShow(dialog)
        }

        func dismiss(_ dialog: PeerPickerDialog) { dismissed += 1 }
    }

    /// The delegate of a picker.
    private final class Owner: NSObject, GKPeerPickerControllerDelegate {
        let given: GKSession
        var chosen: [GKPeerPickerConnectionType] = []
        var connected: [String] = []
        var cancelled = 0
        private let onNews: () -> Void

        init(_ session: GKSession, onNews: @escaping () -> Void) {
            given = session
            self.onNews = onNews
        }

        func peerPickerController(
            _ picker: GKPeerPickerController, didSelect type: GKPeerPickerConnectionType
        ) {
            chosen.append(type)
            if type == .online { picker.dismiss() }
        }

        func peerPickerController(
            _ picker: GKPeerPickerController, sessionFor type: GKPeerPickerConnectionType
        ) -> GKSession { given }

        func peerPickerController(
            _ picker: GKPeerPickerController, didConnectPeer peerID: String, to session: GKSession
        ) {
            connected.append(peerID)
            picker.dismiss()
            onNews()
        }

        func peerPickerControllerDidCancel(_ picker: GKPeerPickerController) {
            cancelled += 1
            onNews()
        }
    }

    /// A device: a picker with its owner and session.
    private struct Device {
        let picker = GKPeerPickerController()
        let session: GKSession
        let owner: Owner

        init(_ name: String, of game: String, onNews: @escaping () -> Void) {
            session = GKSession(sessionID: game, displayName: name, sessionMode: .peer)
            owner = Owner(session, onNews: onNews)
            picker.delegate = owner
        }
    }

    private let screen = Screen()
    private let game = Player.newGame()
    private let waits = MainWaits()

    init() {
        NighGameKit.presenter = screen
        NighGameKit.configure { $0.transports = Wire.memory.transports }
    }

    deinit { NighGameKit.presenter = nil }

    private func device(_ name: String) -> Device { Device(name, of: game) { [waits] in waits.check() } }

    private func wait(until condition: @escaping @MainActor () -> Bool) async {
        await waits.wait(until: condition)
    }

    /// Answers each dialog as two persons would: the first chooses, the second accepts or declines.
    private func play(accepting: Bool) {
        screen.onShow = { [unowned self] dialog in
            switch dialog.stage {
            case .choosingPeer(let peers):
                if dialog === screen.dialogs.first, dialog.failure == nil, let peer = peers.first {
                    dialog.invite(peer)
                }
            case .asked: accepting ? dialog.accept() : dialog.decline()
            case .choosingConnection, .waiting, .connected: break
            }
            waits.check()
        }
    }

    @Test("connects the sessions of two people when one chooses the other, who accepts")
    func connect() async {
        let (puma, lynx) = (device("Puma"), device("Lynx"))
        play(accepting: true)
        puma.picker.show()
        lynx.picker.show()
        #expect(puma.picker.isVisible)
        await wait {
            puma.owner.connected == [lynx.session.peerID] && lynx.owner.connected == [puma.session.peerID]
        }
        for device in [puma, lynx] {
            #expect(!device.picker.isVisible && !device.session.isAvailable && device.owner.cancelled == 0)
            #expect(device.owner.chosen == [.nearby])
            #expect(device.session.peers(with: .stateConnected).count == 1)
        }
        #expect(screen.dismissed == 2)
    }

    @Test("lasts for as long as it is shown, although no program keeps it")
    func unkept() {
        weak var picker: GKPeerPickerController?
        do {
            let made = GKPeerPickerController()
            picker = made
            made.show()
        }
        #expect(picker?.isVisible == true)
        picker?.dismiss()
        #expect(picker == nil)
    }

    @Test("tells the one who chose that the other has declined, and both can choose again")
    func decline() async {
        let (puma, lynx) = (device("Puma"), device("Lynx"))
        play(accepting: false)
        puma.picker.show()
        lynx.picker.show()
        await wait { [screen] in screen.dialogs.first?.failure != nil }
        for dialog in screen.dialogs {
            guard case .choosingPeer(let peers) = dialog.stage else {
                Issue.record("\(dialog.stage)")
                return
            }
            #expect(peers.map(\.name) == [dialog === screen.dialogs[0] ? "Lynx" : "Puma"])
        }
        puma.picker.dismiss()
        lynx.picker.dismiss()
        #expect(puma.owner.connected.isEmpty && puma.owner.cancelled == 0)
    }

    @Test("withdraws what is under way when the person closes it, and says so once")
    func cancel() async {
        let (puma, lynx) = (device("Puma"), device("Lynx"))
        var wasAsked = false
        screen.onShow = { [unowned self] dialog in
            if dialog === screen.dialogs.first, case .choosingPeer(let peers) = dialog.stage,
                let peer = peers.first
            {
                dialog.invite(peer)
            }
            if case .asked = dialog.stage {
                wasAsked = true
                screen.dialogs.first?.cancel()
            }
            waits.check()
        }
        puma.picker.show()
        lynx.picker.show()
        await wait { puma.owner.cancelled == 1 }
        await wait { [screen] in
            guard case .choosingPeer? = screen.dialogs.last?.stage else { return false }
            return screen.dialogs.last?.failure != nil
        }
        #expect(wasAsked && !puma.picker.isVisible && !puma.session.isAvailable)
        lynx.picker.dismiss()
    }

    @Test(
        "lets the person choose the kind of connection if there is a choice, and leaves the Internet to the program"
    )
    func online() {
        let puma = device("Puma")
        puma.picker.connectionTypesMask = [.online, .nearby]
        puma.picker.show()
        #expect(screen.dialogs.first?.stage == .choosingConnection)
        screen.dialogs.first?.choose(.online)
        #expect(puma.owner.chosen == [.online] && !puma.picker.isVisible && !puma.session.isAvailable)
    }

    @Test("is cancelled at once if nothing can show it")
    func withoutPresenter() {
        NighGameKit.presenter = nil
        let puma = device("Puma")
        puma.picker.show()
        #expect(puma.owner.cancelled == 1 && !puma.picker.isVisible)
    }
}
