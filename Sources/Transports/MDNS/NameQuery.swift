import NighCore
import NighUV

/// Asks the network immediately which services have a name.
///
/// Avahi would ask a tenth of a second later. And a responder that has multicast its records within the last half
/// second would not repeat them. A question from a port of its own is answered at once, to the asker alone.
protocol NameQuerying: AnyObject {
    /// Asks for the SRV and TXT records of `name` until `stop`, in place of any earlier question. Calls `received` with
    /// the data of each record.
    func start(for name: DomainName, received: @escaping (RecordType, [UInt8]) -> Void)
    func stop()
}

/// A query over sockets of its own; see ``NameQuerying``. If no socket can be made, it receives nothing, and Avahi
/// finds out later.
///
/// Loop only.
final class NameQuery: NameQuerying {
    /// When to send the question, counted from the start.
    static let attempts: [Moment.Span] = [.zero, .milliseconds(15)]

    private let loop: UVEventLoop
    private let interface: String?
    private var sockets: [MulticastSocket] = []
    private var timers: [LoopTimer] = []
    private var number: UInt16 = 0

    init(on loop: UVEventLoop, interface: String?) {
        self.loop = loop
        self.interface = interface
    }

    func start(for name: DomainName, received: @escaping (RecordType, [UInt8]) -> Void) {
        stop()
        let questions = [RecordType.service, .text].map { Question(name: name, type: $0) }
        let number = UInt16.random(in: 1 ... .max)
        let query = DNSMessage.query(questions, number: number)
        self.number = number
        sockets = MulticastSocket.all(.querying, interface: interface, loop: loop) {
            [unowned self] _, message in
            for answer in DNSMessage.answers(in: message, to: number) where answer.question.name == name {
                // The receiver of one record may have stopped, or asked for something else.
                guard self.number == number else { return }
                received(answer.question.type, answer.data)
            }
        }
        for wait in Self.attempts {
            timers.append(
                loop.schedule(at: loop.now + wait) {
                    for socket in self.sockets { socket.send(query) }
                })
        }
    }

    func stop() {
        number = 0
        for timer in timers { loop.cancel(timer) }
        timers = []
        for socket in sockets { socket.close() }
        sockets = []
    }
}
