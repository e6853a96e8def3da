import MultipeerConnectivity

// Files for those nearby: start `PeerBrowser Puma` and `PeerBrowser Lynx`, type the number of the other, and let it
// accept. Then the path of a file, typed or dropped into the terminal, sends the file to everybody who is connected. It
// arrives in the folder in which the other program was started.

/// Shows peers, questions and the progress of files in a terminal. All of it happens on the main queue.
final class TerminalPresenter: NighPresenter, @unchecked Sendable {
    private struct Transfer {
        let title: String
        let progress: Progress
        let observation: NSKeyValueObservation
    }

    private var browser: MCBrowserViewController?
    private var questions: [(name: String, answer: (Bool) -> Void)] = []
    private var transfers: [Transfer] = []
    private var notices: [String] = []
    private var shown: [String] = []
    private let isTerminal = isatty(STDOUT_FILENO) == 1

    // MARK: Called by the module

    func ask(about invitation: NighInvitation, answer: @escaping (Bool) -> Void) {
        DispatchQueue.main.async {
            self.questions.append((invitation.peerID.displayName, answer))
            self.draw()
        }
    }

    func show(_ browser: MCBrowserViewController) {
        DispatchQueue.main.async {
            self.browser = browser
            self.draw()
        }
    }

    func update(_ browser: MCBrowserViewController) { DispatchQueue.main.async { self.draw() } }

    // MARK: Called by the program

    func add(_ progress: Progress, _ title: String) {
        DispatchQueue.main.async {
            let observation = progress.observe(\.fractionCompleted) { _, _ in
                DispatchQueue.main.async { self.draw() }
            }
            self.transfers.append(Transfer(title: title, progress: progress, observation: observation))
            self.draw()
        }
    }

    /// Shows a line, in place of the transfer with the title `title` if there is one.
    func report(_ line: String, endOf title: String? = nil) {
        DispatchQueue.main.async {
            self.transfers.removeAll { $0.title == title }
            self.notices = self.notices.suffix(4) + [line]
            self.draw()
        }
    }

    // MARK: The screen

    private func tinted(_ code: String, _ text: String) -> String {
        isTerminal ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }

    private func draw() {
        let lines = lines
        if isTerminal {
            // Over what was shown before.
            print("\u{1B}[H\u{1B}[2J" + lines.joined(separator: "\n"))
        } else {
            for line in lines where !shown.contains(line) { print(line) }
        }
        shown = lines
    }

    private var lines: [String] {
        let peers = browser?.peers ?? []
        var lines = peers.isEmpty ? ["Looking for others …"] : []
        for (number, peer) in peers.enumerated() {
            let state =
                switch browser?.state(of: peer) {
                case .connected: tinted("32", "connected")
                case .connecting: tinted("33", "connecting …")
                case .notConnected: tinted("31", "not connected")
                case nil: ""
                }
            lines.append("\(tinted("1", "\(number + 1)")) \(peer.displayName)  \(state)")
        }
        for transfer in transfers {
            // A file that has grown since counts for more than the whole.
            let part = min(max(transfer.progress.fractionCompleted, 0), 1)
            let full = Int(part * 24)
            let bar = String(repeating: "█", count: full) + String(repeating: "░", count: 24 - full)
            lines.append("\(transfer.title)  \(tinted("36", bar)) \(Int(part * 100)) %")
        }
        lines += notices
        if let question = questions.first {
            lines.append("\(tinted("1", question.name)) invites you. \(tinted("2", "[y or n]"))")
        } else {
            lines.append(tinted("2", "[number to invite, path of a file to send, q to end]"))
        }
        return lines
    }

    /// Deals with a line that the person has typed. Returns false if it is for the program.
    func typed(_ line: String) -> Bool {
        if !questions.isEmpty, line == "y" || line == "n" {
            questions.removeFirst().answer(line == "y")
            draw()
            return true
        }
        guard let browser, let number = Int(line), browser.peers.indices ~= number - 1 else { return false }
        browser.invite(browser.peers[number - 1])
        return true
    }
}

final class Exchange: NSObject, MCSessionDelegate, MCBrowserViewControllerDelegate {
    private let session: MCSession
    private let assistant: MCAdvertiserAssistant
    private let controller: MCBrowserViewController
    private let screen = TerminalPresenter()

    init(_ name: String) {
        session = MCSession(peer: MCPeerID(displayName: name))
        assistant = MCAdvertiserAssistant(serviceType: "peerbrowser", discoveryInfo: nil, session: session)
        controller = MCBrowserViewController(serviceType: "peerbrowser", session: session)
        super.init()
        NighMultipeer.presenter = screen
        session.delegate = self
        controller.delegate = self
        assistant.start()
        controller.show()
    }

    func typed(_ line: String) {
        if screen.typed(line) || line.isEmpty { return }
        if line == "q" { return controller.cancel() }
        let url = URL(fileURLWithPath: line)
        for peer in session.connectedPeers {
            let title = "\(url.lastPathComponent) to \(peer.displayName)"
            let progress = session.sendResource(at: url, withName: url.lastPathComponent, toPeer: peer) {
                [screen] error in
                screen.report(
                    "\(title): \(error.map { "failed, \($0.localizedDescription)" } ?? "sent")", endOf: title)
            }
            if let progress { screen.add(progress, title) }
        }
    }

    func browserViewControllerDidFinish(_ browserViewController: MCBrowserViewController) {}

    func browserViewControllerWasCancelled(_ browserViewController: MCBrowserViewController) {
        assistant.stop()
        session.disconnect()
        // The others are notified meanwhile.
        DispatchQueue.main.asyncAfter(deadline: .now() + 0.5) { exit(0) }
    }

    func session(_ session: MCSession, peer peerID: MCPeerID, didChange state: MCSessionState) {
        switch state {
        case .connected: screen.report("\(peerID.displayName) is connected")
        case .notConnected: screen.report("\(peerID.displayName) is not connected")
        default: break
        }
    }

    func session(
        _ session: MCSession, didStartReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID, with progress: Progress
    ) { screen.add(progress, "\(resourceName) from \(peerID.displayName)") }

    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID, at localURL: URL?, withError error: (any Error)?
    ) {
        let title = "\(resourceName) from \(peerID.displayName)"
        guard let localURL else {
            return screen.report("\(title): \(error?.localizedDescription ?? "failed")", endOf: title)
        }
        // A name from elsewhere is not to lead out of this folder, and nothing is to be replaced.
        let name = URL(fileURLWithPath: resourceName).lastPathComponent
        do {
            try FileManager.default.moveItem(at: localURL, to: URL(fileURLWithPath: "received-\(name)"))
            screen.report("\(title): is here as received-\(name)", endOf: title)
        } catch {
            screen.report("\(title): \(error.localizedDescription)", endOf: title)
        }
    }

    func session(_ session: MCSession, didReceive data: Data, fromPeer peerID: MCPeerID) {}

    func session(
        _ session: MCSession, didReceive stream: InputStream, withName streamName: String,
        fromPeer peerID: MCPeerID
    ) {}
}

let exchange = Exchange(CommandLine.arguments.dropFirst().first ?? "somebody")
Thread.detachNewThread {
    while let line = readLine() { DispatchQueue.main.async { exchange.typed(line) } }
    DispatchQueue.main.async { exchange.typed("q") }
}
RunLoop.main.run()
