/// Two peers, with what nearly every scenario does to them and expects of them.
struct Pair {
    let one: PeerProcess
    let other: PeerProcess

    init(_ one: PeerProcess, _ other: PeerProcess) {
        self.one = one
        self.other = other
    }

    private var lab: Lab { one.host.lab }
    private var names: String { "\(one.name) and \(other.name)" }

    var peers: [PeerProcess] { [one, other] }

    /// Each of the two with the other one.
    var directions: [(PeerProcess, PeerProcess)] { [(one, other), (other, one)] }

    // MARK: Meeting and parting

    /// Waits until something holds for each of them as it sees the other one.
    func wait(
        for words: String, within limit: Duration = .seconds(10), _ holds: (PeerProcess.View) -> Bool
    ) throws {
        try lab.wait(for: words, within: limit) { directions.allSatisfy { holds($0.view(of: $1)) } }
    }

    /// Waits until they have found each other.
    func find(within limit: Duration = .seconds(10)) throws {
        try wait(for: "\(names) to find each other", within: limit) { $0.isFound }
    }

    /// Waits until they are connected, as both see it.
    func connection(within limit: Duration = .seconds(10)) throws {
        try wait(for: "\(names) to be connected", within: limit) { $0.state == "connected" }
    }

    /// Lets the first invite the second.
    func invite(within limit: Duration = .seconds(10)) throws {
        one.invite(other)
        try connection(within: limit)
    }

    /// Lets them find each other, connects them, and lets them exchange messages.
    func meet(findingWithin limit: Duration = .seconds(10)) throws {
        try find(within: limit)
        try invite(within: limit)
        try exchangeMessages()
    }

    /// Lets the second call the first at its address, without any discovery.
    func callByHand() throws {
        try lab.wait(for: "\(one.name) to listen") { !one.listening.isEmpty }
        other.sendCommand("call tcp://\(one.host.address()):\(try one.port())")
        try connection()
    }

    /// Lets the first leave the second.
    func part() throws {
        one.leave(other)
        try wait(for: "\(names) to part") { $0.state != "connected" }
    }

    // MARK: Messages

    /// Makes both send `count` more messages to each other, and waits until each has received everything ever sent to
    /// it.
    func exchangeMessages(count: Int = 20) throws {
        let before = directions.map { $0.sent(to: $1).count }
        for (one, other) in directions { one.send(count, to: other) }
        try lab.wait(for: "\(count) messages from \(names) each") {
            directions.map { $0.sent(to: $1).count - count } == before
        }
        try delivery()
    }

    /// Makes both send `count` messages in a conversation after one that was lost with what was on its way. So only
    /// what comes now is compared.
    func exchangeMessagesAnew(count: Int = 20) throws {
        let wanted = directions.map { $0.received(from: $1).count + count }
        for (one, other) in directions { one.send(count, to: other) }
        try lab.wait(for: "\(count) messages each in the new conversation") {
            zip(directions, wanted).allSatisfy { $0.0.received(from: $0.1).count >= $1 }
        }
    }

    /// Waits until each has received everything that the other's session accepted, in order and nothing else.
    func delivery(within limit: Duration = .seconds(10)) throws {
        try lab.wait(for: "everything between \(names) to arrive", within: limit) {
            directions.allSatisfy { $0.hasDelivered(to: $1) }
        }
        lab.journal.note("lab", "arrived: \(directions.map { $0.sent(to: $1).count })")
    }

    /// Makes both send a message every 20 ms until `stopSending`.
    func sendSteadily() throws {
        for (one, other) in directions { one.send(to: other, every: .milliseconds(20)) }
        try messageFlow(count: 10)
    }

    /// Waits until more than `count` further messages have arrived at each side.
    func messageFlow(count: Int = 50, within limit: Duration = .seconds(10)) throws {
        let wanted = directions.map { $0.received(from: $1).count + count }
        try lab.wait(for: "messages to flow both ways", within: limit) {
            zip(directions, wanted).allSatisfy { $0.0.received(from: $0.1).count > $1 }
        }
    }

    /// Ends the steady sending, and waits until everything has arrived.
    func stopSending() throws {
        for peer in peers { peer.stopSending() }
        // A message that was being sent at that moment is either accepted and reported, or neither. The pong to a ping
        // behind it shows that this is decided.
        let before = directions.map { $0.view(of: $1).pongs }
        for (one, other) in directions { one.ping(other) }
        try lab.wait(for: "the last message to be sent") {
            zip(directions, before).allSatisfy { $0.0.view(of: $0.1).pongs > $1 }
        }
        try delivery()
    }

    // MARK: The conversation

    /// Whether the conversation never ended, as either sees it.
    var isUnbroken: Bool { directions.allSatisfy { $0.isUnbroken(with: $1) } }

    /// Ends the steady sending. Everything must have arrived, in one conversation.
    func stopAsOneConversation() throws {
        try stopSending()
        try lab.check("it is still one conversation", isUnbroken)
    }

    /// Waits until both look for another link.
    func linkLoss(within limit: Duration) throws {
        try wait(for: "both to look for another link", within: limit) { $0.state == "reconnecting" }
    }

    /// Waits until both are told that the conversation is over.
    func end(within limit: Duration) throws {
        try wait(for: "both to be told that the conversation is over", within: limit) { view in
            view.states.contains { $0.state == "disconnected" }
        }
    }

    /// Waits until that transport carries the conversation.
    func move(to transport: String, within limit: Duration = .seconds(40)) throws {
        try wait(for: "the conversation to be on \(transport)", within: limit) {
            $0.state == "connected" && $0.transports.last == transport
        }
    }

    func checkTheyAreAlone() throws {
        try lab.check("each knows the other and nobody else", peers.allSatisfy { $0.views.count == 1 })
    }
}

extension Lab {
    /// Two hosts, puma and lynx, with a peer each that has these options.
    func pair(
        _ options: PeerProcess.Options = .byItself, daemon: Bool = false, addresses: Host.Addresses = .all
    ) throws -> Pair {
        let hosts = try ["puma", "lynx"].map { try host($0, daemon: daemon, addresses: addresses) }
        return Pair(try hosts[0].peer("Puma", options), try hosts[1].peer("Lynx", options))
    }
}
