#if os(Linux)
    import MultipeerConnectivity
    import Synchronization
    import Testing

    /// Tests of the presenter, which replaces Apple's windows. A program has one presenter, so they run one after the
    /// other.
    @Suite("A presenter", .serialized, .timeLimit(.minutes(15))) struct PresenterTests {
        private let service = Device.service()

        @Test(
            "shows peers, has one invited, and finishes when there are enough; the other side's is asked about it"
        )
        func chooses() async throws {
            let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
            let presenter = Presenter()
            NighMultipeer.presenter = presenter
            let assistant = MCAdvertiserAssistant(
                serviceType: service, discoveryInfo: ["k": "v"], session: lynx.session)
            let watcher = Watcher()
            assistant.delegate = watcher
            assistant.start()
            let controller = MCBrowserViewController(serviceType: service, session: puma.session)
            controller.delegate = watcher
            controller.show()
            #expect(!controller.finish())
            let peer = try await presenter.first.value()
            #expect(controller.discoveryInfo(of: peer) == ["k": "v"] && controller.peers == [lynx.id])
            #expect(controller.state(of: peer) == nil && controller.invite(peer))
            #expect(controller.state(of: peer) != nil)
            #expect(try await presenter.asked.value() == puma.id)
            await puma.wait(for: .state(lynx.id, .connected))
            #expect(try await presenter.connected.value() == lynx.id)
            #expect(controller.finish())
            #expect(try await watcher.finished.value() == 1)
            await lynx.wait(for: .state(puma.id, .connected))
            #expect(watcher.presented == ["will", "did"])
            // When it is shown again, it lists the peers that it finds then.
            controller.show()
            #expect(try await presenter.again.value() == [lynx.id])
            controller.cancel()
            assistant.stop()
            puma.end()
            lynx.end()
            NighMultipeer.presenter = nil
        }

        @Test("that is not there has every invitation declined")
        func none() async throws {
            let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
            let assistant = MCAdvertiserAssistant(
                serviceType: service, discoveryInfo: nil, session: lynx.session)
            assistant.start()
            puma.browser.startBrowsingForPeers()
            let peer = try await puma.found("Lynx")
            puma.browser.invitePeer(peer, to: puma.session, withContext: nil, timeout: Device.patience)
            await puma.wait(for: .state(lynx.id, .notConnected))
            assistant.stop()
            puma.end()
            lynx.end()
        }
    }

    private final class Presenter: NighPresenter {
        let first = Held<MCPeerID>()
        let asked = Held<MCPeerID>()
        let connected = Held<MCPeerID>()
        /// The peers that a controller lists when it is shown for the second time.
        let again = Held<[MCPeerID]>()
        private let shows = Atomic(0)

        func ask(about invitation: NighInvitation, answer: @escaping (Bool) -> Void) {
            answer(true)
            asked.give(invitation.peerID)
        }

        func show(_ browser: MCBrowserViewController) { shows.add(1, ordering: .relaxed) }

        func update(_ browser: MCBrowserViewController) {
            guard let peer = browser.peers.first else { return }
            first.give(peer)
            if shows.load(ordering: .relaxed) == 2 { again.give(browser.peers) }
            if browser.state(of: peer) == .connected { connected.give(peer) }
        }
    }

    private final class Watcher: NSObject, MCBrowserViewControllerDelegate, MCAdvertiserAssistantDelegate,
        @unchecked Sendable
    {
        let finished = Held<Int>()
        private let lock = NSLock()
        private var log: [String] = []

        var presented: [String] { lock.withLock { log } }

        func browserViewControllerDidFinish(_ browserViewController: MCBrowserViewController) {
            finished.give(1)
        }

        func browserViewControllerWasCancelled(_ browserViewController: MCBrowserViewController) {}

        func advertiserAssistantWillPresentInvitation(_ advertiserAssistant: MCAdvertiserAssistant) {
            lock.withLock { log.append("will") }
        }

        func advertiserAssistantDidDismissInvitation(_ advertiserAssistant: MCAdvertiserAssistant) {
            lock.withLock { log.append("did") }
        }
    }
#endif
