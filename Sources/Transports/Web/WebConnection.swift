import NighCore
import NighTCP
import NighUV

/// Decides for the connections of a `WebTransport`, which implements it.
protocol WebHost: AnyObject {
    /// The page that is served.
    var page: WebPage { get }
    /// The names of the server.
    var names: WebNames { get }
    /// The most bytes per second that a guest may send.
    var rate: Int { get }
    /// How long a connection may take for its steps.
    var times: WebTimes { get }

    /// Lets a guest in, or says why not.
    func enter(_ entry: GuestEntry, by connection: WebConnection) -> GuestAnswer
    /// Hands on the pipe of a guest that begins to talk.
    func opened(_ pipe: WebPipe)
    /// The most bytes that a guest may send and be sent.
    var byteLimit: Int { get }
    /// Counts bytes of a guest. Returns false if it has used up its limit.
    func count(_ bytes: Int, of guest: PeerID) -> Bool
}

/// How long the connections of browsers may take. Tests give less.
struct WebTimes {
    /// How long a request may take, from its first byte or the end of the one before.
    var request = Moment.Span.seconds(5)
    /// How long a guest that was let in may wait before it begins its pipe: a person types a name.
    var waiting = Moment.Span.seconds(120)
}

/// One connection of a browser: requests for the files of the page, until one makes it a WebSocket. Then the guest
/// identifies itself, and all later bytes are its pipe.
///
/// Each step has a deadline, so a connection that says nothing, or too little, ends. Loop only.
final class WebConnection {
    /// How many requests one connection may make.
    private static let mostRequests = 100
    /// The most frames before a guest begins its pipe, and the most that are read at once before others have their
    /// turn.
    private static let mostFrames = 1_000

    private enum Phase {
        case requests(HTTPRequestReader)
        /// The first message of the guest, as far as it has come.
        case entering([UInt8])
        /// The guest was let in, and has not begun its pipe.
        case entered(PeerID)
        case open(WebPipe)
        /// A last answer is being sent.
        case over
    }

    let socket: SocketPipe
    /// The address of the other end without its port, by which sources are told apart.
    let source: String
    private weak var host: (any WebHost)?
    private let loop: any EventLoop
    private let times: WebTimes
    private var phase = Phase.requests(HTTPRequestReader())
    private var reader = WebSocketReader()
    private var requestCount = 0
    /// The bytes of answers that waited when the deadline passed last.
    private var waitingBytes = Int.max
    /// How many frames there were when they were counted last.
    private var countedFrames = 0
    /// The bytes of the last ping, if it was not answered yet.
    private var unansweredPing: [UInt8]?
    private var timer: LoopTimer?

    init(_ socket: SocketPipe, from source: String, of host: any WebHost, on loop: any EventLoop) {
        self.socket = socket
        self.source = source
        self.host = host
        self.loop = loop
        times = host.times
        setDeadline(after: times.request)
        socket.start(handler: self)
    }

    /// The guest that was let in here, also once it has left.
    private(set) var visitor: PeerID?

    /// Whether nobody was let in here, or the last answer is under way, so that it may be ended to make room.
    var mayMakeRoom: Bool {
        switch phase {
        case .requests, .entering, .over: true
        case .entered, .open: false
        }
    }

    /// Whether it carries the pipe of a guest.
    var isOpen: Bool { if case .open = phase { true } else { false } }

    /// Ends the connection, and tells nobody but the guest.
    func finish() {
        cancelDeadline()
        if case .open(let pipe) = phase { pipe.end() }
        phase = .over
        socket.finish()
    }

    /// Sends the guest away. It has left from now on: it may be back over another connection before this one is over.
    func sendAway() {
        visitor = nil
        switch phase {
        case .open(let pipe):
            let error = NighError(
                .conversing, .left, transport: WebTransport.schemeName, advice: "the guest was sent away")
            pipe.fail(with: error)
        case .entered: close(.policyViolation)
        case .requests, .entering, .over: break
        }
    }

    // MARK: Deadlines

    private func setDeadline(after time: Moment.Span) {
        cancelDeadline()
        timer = loop.schedule(at: loop.now + time) { [weak self] in
            self?.timer = nil
            self?.timeIsUp()
        }
    }

    private func cancelDeadline() {
        if let timer { loop.cancel(timer) }
        timer = nil
    }

    private func timeIsUp() {
        switch phase {
        case .requests:
            // A slow phone gets a file to its end, as long as it takes any of it.
            let waiting = socket.counters.bytesWaiting
            guard waiting > 0, waiting < waitingBytes else { return finish() }
            waitingBytes = waiting
            setDeadline(after: times.request)
        case .entering, .entered: close(.policyViolation)
        case .open, .over: break
        }
    }

    // MARK: Requests

    private func receive(_ bytes: ByteSlice, with requests: HTTPRequestReader) {
        var requests = requests
        do throws(HTTPFault) {
            try bytes.withUnsafeBytes { bytes throws(HTTPFault) in try requests.append(bytes) }
            while let request = try requests.next() {
                guard let host else { return finish() }
                if request.path == WebTransport.path {
                    return try upgrade(request, of: host, rest: requests.takeRest())
                }
                try answer(request, of: host)
                guard case .requests = phase else { return }
            }
            phase = .requests(requests)
        } catch {
            refuse(error)
        }
    }

    private func answer(_ request: HTTPRequest, of host: any WebHost) throws(HTTPFault) {
        guard host.names.contains(request.headers["host"] ?? "") else { throw .forbidden }
        guard let file = host.page.files[request.path] else { throw .notFound }
        requestCount += 1
        let closes = request.closes || requestCount >= Self.mostRequests
        let (head, body) = HTTPAnswer.file(
            file, compressed: request.has("gzip", in: "accept-encoding"), closes: closes)
        var answer = ByteQueue()
        answer.append(ByteSlice(head))
        answer.append(body)
        socket.write(&answer)
        if closes { return end() }
        waitingBytes = .max
        setDeadline(after: times.request)
    }

    private func upgrade(
        _ request: HTTPRequest, of host: any WebHost, rest: [UInt8]
    ) throws(HTTPFault) {
        let name = request.headers["host"] ?? ""
        guard host.names.contains(name), host.names.permits(origin: request.headers["origin"], at: name)
        else {
            throw .forbidden
        }
        guard request.has("websocket", in: "upgrade"), request.has("upgrade", in: "connection"),
            request.headers["sec-websocket-version"] == "13",
            request.has(WebTransport.subprotocol, in: "sec-websocket-protocol")
        else { throw .upgradeRequired }
        guard let key = request.headers["sec-websocket-key"], key.utf8.count == 24 else { throw .badRequest }
        send(HTTPAnswer.upgrade(key: key))
        phase = .entering([])
        setDeadline(after: times.request)
        if !rest.isEmpty { receiveFrames(ByteSlice(rest)) }
    }

    private func refuse(_ fault: HTTPFault) {
        send(HTTPAnswer.refusal(fault))
        end()
    }

    // MARK: The WebSocket

    /// Whether the frames of the guest still mean something: its pipe may be closed or failing.
    private var readsFrames: Bool {
        switch phase {
        case .entering, .entered: true
        case .open(let pipe): pipe.isOpen
        case .requests, .over: false
        }
    }

    private func receiveFrames(_ bytes: ByteSlice) {
        guard readsFrames else { return }
        reader.append(bytes)
        do throws(WebSocketCode) {
            while let event = try reader.next() {
                switch event {
                case .bytes(let bytes, let endsMessage): try receive(bytes, endsMessage: endsMessage)
                case .ping(let bytes): unansweredPing = bytes
                case .close: return closedByGuest()
                }
                guard readsFrames else { return }
            }
            answerPing()
            try countFrames()
        } catch {
            violated(error)
        }
    }

    /// Keeps tiny frames from taking the time of everybody else.
    private func countFrames() throws(WebSocketCode) {
        let isFlood = reader.frameCount - countedFrames > Self.mostFrames
        guard case .open(let pipe) = phase else {
            if isFlood { throw .policyViolation }
            return
        }
        countedFrames = reader.frameCount
        if isFlood { pipe.rest() }
    }

    /// Answers the last of the pings that came at once, as RFC 6455 allows in 5.5.3, as fast as the answers leave.
    private func answerPing() {
        guard let bytes = unansweredPing else { return }
        unansweredPing = nil
        if socket.writableBytes > 0 { send(WebSocketFrame.pong(bytes)) }
    }

    private func receive(_ bytes: ByteSlice, endsMessage: Bool) throws(WebSocketCode) {
        switch phase {
        case .entering(let begun):
            let all = begun + bytes.bytes
            guard all.count <= GuestEntry.longest else { throw .policyViolation }
            phase = .entering(all)
            if endsMessage { try enter(all) }
        case .entered(let guest):
            guard let host, !bytes.isEmpty else { return }
            let pipe = WebPipe(
                of: guest, over: socket, on: loop, rate: host.rate, byteLimit: host.byteLimit
            ) { [weak host] in
                host?.count($0, of: guest) ?? false
            }
            cancelDeadline()
            phase = .open(pipe)
            host.opened(pipe)
            pipe.receive(bytes)
        case .open(let pipe): pipe.receive(bytes)
        case .requests, .over: break
        }
    }

    private func enter(_ bytes: [UInt8]) throws(WebSocketCode) {
        guard let host, let entry = GuestEntry(bytes) else { throw .policyViolation }
        let answer = host.enter(entry, by: self)
        let message = answer.bytes
        send(WebSocketFrame.header(of: message.count) + message)
        switch answer {
        case .entered(let guest, _):
            phase = .entered(guest)
            visitor = guest
            setDeadline(after: times.waiting)
        case .refused: throw .policyViolation
        }
    }

    private func violated(_ code: WebSocketCode) {
        guard case .open(let pipe) = phase else { return close(code) }
        phase = .over
        let what = "a guest broke the rules of WebSocket (\(code.rawValue))"
        pipe.closed(NighError(.conversing, .protocolViolation(what), transport: WebTransport.schemeName))
        close(code)
    }

    private func closedByGuest() {
        if case .open(let pipe) = phase { pipe.closed(nil) }
        close(.normal)
    }

    private func close(_ code: WebSocketCode) {
        send(WebSocketFrame.close(code))
        end()
    }

    /// Sends the waiting bytes, and ends the connection.
    private func end() {
        cancelDeadline()
        phase = .over
        socket.close(.afterWriting)
    }

    private func send(_ bytes: [UInt8]) {
        var queue = ByteQueue()
        queue.append(ByteSlice(bytes))
        socket.write(&queue)
    }
}

extension WebConnection: PipeHandler {
    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        switch phase {
        case .requests(let requests): receive(bytes, with: requests)
        case .entering, .entered: receiveFrames(bytes)
        case .open(let pipe):
            pipe.noteArrival(of: bytes.count)
            receiveFrames(bytes)
        case .over: break
        }
    }

    func pipeBecameWritable(_ pipe: any Pipe) { if case .open(let pipe) = phase { pipe.becameWritable() } }

    func pipeEnded(_ pipe: any Pipe) {
        if case .open(let pipe) = phase { pipe.closed(nil) }
        end()
    }

    func pipeClosed(_ pipe: any Pipe, error: NighError?) {
        cancelDeadline()
        if case .open(let pipe) = phase { pipe.closed(error) }
        phase = .over
    }

    func pipeDrained(_ pipe: any Pipe) { if case .open(let pipe) = phase { pipe.drained() } }
}
