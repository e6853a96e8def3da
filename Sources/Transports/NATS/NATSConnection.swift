import NighBroker
import NighCore

/// A client of NATS, over libnats.
///
/// Everything that may block happens on a thread of the client's own (``ClientThread``). Commands go there through an
/// ``Outbox``, and events come back through an ``Inbox``, each with a limit of bytes. Beyond it, packets are dropped
/// and ``BrokerEvents/brokerFailed(_:)`` reports it once, until the waiting packets have left.
///
/// `@unchecked Sendable`: confined to the loop from `start` on.
package final class NATSConnection: Broker, @unchecked Sendable {
    /// The pause before another attempt to start the thread.
    private static let threadRetry = Moment.Span.seconds(1)
    /// How many refused subjects a diagnosis knows.
    private static let keptRefusals = 64

    let options: NATSOptions
    private var loop: (any EventLoop)?
    private weak var events: (any BrokerEvents)?
    private var inbox: Inbox?
    private var client: ClientThread?
    private var timer: LoopTimer?
    private var isDropping = false
    /// Whether as many bytes have waited as should, and no room was reported since.
    private var isFull = false

    /// The version of libnats, once it is loaded.
    private(set) var libraryVersion: String?
    /// The facts that the server has given; nil while there is no connection.
    private(set) var facts: ServerFacts?
    /// Why there is no connection, if that is known.
    private(set) var problem: NighError?
    private(set) var roundTrip: Moment.Span?
    /// The subjects that this server has refused, in the order in which it did.
    private(set) var refusals: [NATSProblem.Refusal] = []

    /// Creates a client with these settings.
    package init(_ options: NATSOptions) { self.options = options }

    package func start(on loop: any EventLoop, events: any BrokerEvents) {
        self.loop = loop
        self.events = events
        open()
    }

    /// Starts a thread, with an inbox of its own: another one that hangs may report something later.
    private func open() {
        guard let loop else { return }
        let inbox = Inbox(on: loop) { [weak self] in self?.deliver() }
        self.inbox = inbox
        do throws(NighError) {
            client = try ClientThread(options, into: inbox)
        } catch {
            timer = loop.schedule(at: loop.now + Self.threadRetry) {
                self.timer = nil
                self.open()
            }
            if problem != error { inbox.disconnect(error) }
        }
    }

    package func shutdown() {
        if let timer { loop?.cancel(timer) }
        timer = nil
        events = nil
        facts = nil
        inbox?.close()
        // It ends by itself, so nothing here waits for a server.
        client?.end()
        client = nil
    }

    package func subscribe(to subject: String) { perform(.subscribe(subject)) }

    package func unsubscribe(from subject: String) { perform(.unsubscribe(subject)) }

    package func publish(_ packet: [UInt8], to subject: String, answers: String?) {
        guard let facts, let client else { return }
        let waiting = client.outbox.byteCount
        if waiting + packet.count > Outbox.limit {
            if !isDropping { inbox?.add(.failed(NATSProblem.slowServer(limit: Outbox.limit, facts.server))) }
            isDropping = true
            return
        }
        if isDropping, waiting < Outbox.limit / 2 { isDropping = false }
        perform(.publish(packet, subject: subject, answers: answers))
        guard client.bytesWaiting >= ClientThread.queue else { return }
        isFull = true
        client.awaitRoom(on: facts.generation)
    }

    package func mark(_ number: UInt64) { perform(.mark(number)) }

    package var bytesWaiting: Int { client?.bytesWaiting ?? 0 }

    private func perform(_ command: Outbox.Command) {
        guard let facts, let client, client.perform(command, on: facts.generation) else { return }
        // All messages published in this turn leave in the same write.
        loop?.execute { client.wake() }
    }

    /// Finds out how long a round trip takes now.
    func measureRoundTrip() { if facts != nil { client?.waiter.measure() } }

    // MARK: Events

    private func deliver() {
        inbox?.takeAll { event in
            guard let events else { return false }
            switch event {
            case .loaded(let version): libraryVersion = version
            case .hung(let error):
                startOver(error)
                return false
            case .packet(let bytes, let subject, let answers):
                events.brokerReceived(bytes, under: subject, answers: answers)
            case .foundNobody(let answers): events.brokerFoundNobody(answeringTo: answers)
            case .marked(let number): events.brokerHasReceived(mark: number)
            case .hasRoom: reportRoom()
            case .roundTrip(let span): roundTrip = span
            case .failed(let error): events.brokerFailed(error)
            case .refused(let refusal): note(refusal)
            case .connected(let facts):
                self.facts = facts
                problem = nil
                roundTrip = nil
                refusals = []
                isDropping = false
                isFull = false
                events.brokerConnected(
                    BrokerLimits(longestPacket: facts.longestPacket, queue: ClientThread.queue))
            case .disconnected(let error):
                facts = nil
                problem = error
                events.brokerDisconnected(error)
            }
            return true
        }
    }

    /// Leaves the client's thread, which hangs, to itself. It ends when the library returns to it.
    private func startOver(_ error: NighError) {
        inbox?.close()
        client?.end()
        client = nil
        facts = nil
        problem = error
        open()
        events?.brokerDisconnected(error)
    }

    /// Reports that there is room, unless more has been published since the client's thread found it.
    private func reportRoom() {
        guard isFull, let client, let facts else { return }
        if client.bytesWaiting <= ClientThread.queue / 2 {
            isFull = false
            events?.brokerHasRoom()
        } else {
            client.awaitRoom(on: facts.generation)
        }
    }

    /// Reports each refusal once: a server repeats it for every packet.
    private func note(_ refusal: NATSProblem.Refusal) {
        guard let facts, refusals.count < Self.keptRefusals, !refusals.contains(refusal) else { return }
        refusals.append(refusal)
        events?.brokerFailed(refusal.error(facts.server))
    }
}
