import NighTestKit
import Testing

@testable import NighCore

/// A session in virtual time whose only peer is the test, which writes bytes without encryption.
///
/// `@unchecked Sendable`: everything happens on the one virtual loop.
final class ScriptedPeer: @unchecked Sendable {
    /// A frame that the session has written.
    struct Frame: Equatable {
        let type: UInt8
        let payload: [UInt8]

        init(_ type: FrameType, _ payload: [UInt8]) {
            self.type = type.rawValue
            self.payload = payload
        }

        fileprivate init(type: UInt8, payload: [UInt8]) {
            self.type = type
            self.payload = payload
        }

        static func close(_ code: UInt16) -> Frame {
            Frame(.close, [UInt8(code >> 8), UInt8(code & 0xFF), 0])
        }
    }

    static let address = ScriptedTransport.address("there")
    static let preface: [UInt8] = [0x4E, 0x49, 0x47, 0x48, 1, 1, 0, 0]
    static let hello = Frames.hello(seed: 0x22, incarnation: 7, service: "test", name: "Scripted")
    static let peer = hello.peer

    let loop = VirtualEventLoop()
    let transport = ScriptedTransport()
    let session: Session
    private(set) var pipe: ScriptedPipe
    /// How the session answers an invitation.
    var answer: (Invitation) -> Void = { $0.accept() }
    private(set) var events: [SessionEvent] = []
    private(set) var texts: [String] = []
    var outcomes: [Result<PeerID, NighError>] = []
    /// The ID of the current conversation.
    private(set) var conversation: [UInt8] = []
    private var unread: [UInt8] = []

    /// Starts a session that accepts every invitation.
    init(adjust: (inout SessionConfiguration) -> Void = { _ in }) throws {
        var configuration = SessionConfiguration(service: "test", name: DisplayName(fitting: "Puma's den"))
        configuration.security = .none
        configuration.seed = 1
        adjust(&configuration)
        pipe = ScriptedPipe(of: transport)
        session = Session(
            configuration, identity: .ephemeral(seed: 1), transports: [transport], loop: loop)
        session.start(
            onEvent: { [unowned self] event in
                events.append(event)
                if case .invited(let invitation) = event { answer(invitation) }
            },
            onMessage: { [unowned self] bytes, _ in
                texts.append(bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
            })
        try loop.runQueued()
    }

    // MARK: Pipes

    /// Opens a pipe to the session, or the pipe of one of its dials.
    func open(dial: DialID? = nil) throws {
        pipe = ScriptedPipe(of: transport)
        pipe.room = 1 << 20
        unread = []
        transport.events?.pipeOpened(pipe, dial: dial, by: transport)
        try loop.runQueued()
    }

    /// Opens the pipe that the session has dialled last.
    func openDialled() throws {
        let dial = try #require(dials.last)
        try open(dial: dial)
    }

    /// Breaks the pipe without a goodbye.
    func cut() throws {
        pipe.handler?.pipeClosed(pipe, error: nil)
        try loop.runQueued()
    }

    /// The dials that the session has made so far.
    var dials: [DialID] {
        transport.calls.compactMap { call in
            let words = call.split(separator: " ")
            return words.first == "dial" ? words.last.flatMap { UInt64($0) }.map(DialID.init(number:)) : nil
        }
    }

    func run(_ duration: Duration) throws { try loop.run(for: duration) }

    // MARK: Bytes

    func send(_ bytes: [UInt8]) throws {
        pipe.receive(bytes)
        try loop.runQueued()
    }

    func send(_ type: FrameType, _ payload: [UInt8] = []) throws { try send(Frames.frame(type, payload)) }

    func send(close code: UInt16) throws { try send(.close, [UInt8(code >> 8), UInt8(code & 0xFF), 0]) }

    /// The bytes that the session has written since the last call of this.
    func takeOutput() -> [UInt8] { pipe.takeWritten() }

    /// The same in frames. There must be no other bytes.
    func takeFrames() throws -> [Frame] {
        unread += takeOutput()
        var frames: [Frame] = []
        while unread.count >= 4 {
            let length = Int(unread[0]) << 16 | Int(unread[1]) << 8 | Int(unread[2])
            guard unread.count >= 4 + length else { break }
            frames.append(Frame(type: unread[3], payload: Array(unread[4..<4 + length])))
            unread.removeFirst(4 + length)
        }
        try #require(unread.isEmpty, "half a frame")
        return frames
    }

    // MARK: Common beginnings

    static let standing: [UInt8] =
        [UInt8](repeating: 0, count: 16) + [0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0]

    /// Exchanges prefaces and hellos. What the session sends after its own hello is left unread.
    func exchangeHellos(_ hello: Hello = ScriptedPeer.hello) throws {
        try send(Self.preface)
        #expect(takeOutput().prefix(8) == Self.preface[...])
        try send(.hello, hello.payload)
    }

    /// Makes the session invite this peer and wait for its answer.
    func invite(_ hello: Hello = ScriptedPeer.hello) throws {
        session.invite(at: Self.address) { [unowned self] in outcomes.append($0) }
        try loop.runQueued()
        try openDialled()
        try exchangeHellos(hello)
        let invite = try #require(try takeFrames().first { $0.type == FrameType.invite.rawValue })
        conversation = Array(invite.payload.prefix(8))
    }

    /// Makes the session invite this peer, which accepts.
    func beginConversation(_ hello: Hello = ScriptedPeer.hello) throws {
        try invite(hello)
        try send(.accept, conversation + [UInt8](repeating: 0, count: 8) + Self.standing)
        try #require(state == .connected)
        _ = takeOutput()
    }

    /// Cuts the link. The session dials again, and asks to resume the conversation.
    func losesLinkAndAsks() throws {
        let before = dials.count
        try cut()
        try run(.milliseconds(1))
        try #require(state == .reconnecting && dials.count == before + 1)
        try openDialled()
        try exchangeHellos()
        try #require(try takeFrames().contains { $0.type == FrameType.resume.rawValue })
    }

    // MARK: The session's view

    var state: PeerState? { change?.peer.state }

    /// The reason for that state.
    var cause: NighError? { change?.cause }

    /// The error of the last call, if it failed.
    var failure: NighError? {
        guard case .failure(let error)? = outcomes.last else { return nil }
        return error
    }

    private var change: (peer: Peer, cause: NighError?)? {
        events.reversed().lazy.compactMap(\.stateChange).first { $0.peer.id == Self.peer }
    }

    /// The states of the peer, in order.
    var moves: [PeerState] {
        events.compactMap { $0.stateChange?.peer.state }
    }

    /// The reasons for which conversations have ended.
    var endings: [NighError.Cause] {
        events.compactMap {
            if case .disconnected(_, let error) = $0 { error.cause } else { nil }
        }
    }
}
