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

    private let network = SimulatedNetwork()
    let transport = ScriptedTransport()
    /// The session's program.
    let probe: SessionProbe
    private(set) var pipe: ScriptedPipe
    /// The ID of the current conversation.
    private(set) var conversation: [UInt8] = []
    private var unread: [UInt8] = []

    /// Starts a session that accepts every invitation.
    init(adjust: (inout SessionConfiguration) -> Void = { _ in }) throws {
        let transport = transport
        pipe = ScriptedPipe(of: transport)
        probe = network.join(
            "Puma's den",
            adjust: {
                $0.security = .none
                $0.seed = 1
                adjust(&$0)
            }, through: { _ in transport })
        try loop.runQueued()
    }

    var loop: VirtualEventLoop { network.loop }
    var session: Session { probe.session }
    var machine: SessionMachine {
        _read { yield probe.machine }
        _modify { yield &probe.machine }
    }
    var events: [SessionEvent] { probe.events }
    var texts: [String] { probe.texts }
    var failure: NighError? { probe.failure }
    var outcomes: [Result<PeerID, NighError>] {
        get { probe.outcomes }
        set { probe.outcomes = newValue }
    }
    /// The state of the peer as last reported, and all its states.
    var state: PeerState { probe.state(of: Self.peer) }
    var moves: [PeerState] { probe.states(of: Self.peer) }
    var endings: [NighError.Cause] { probe.endings }

    /// Lets the transport find the peer at an address.
    @discardableResult
    func find(at address: TransportAddress, isFull: Bool = false) -> Sighting {
        let sighting = Sighting(
            address: address,
            advertisement: Advertisement(
                service: "test", peer: Self.peer, name: Self.hello.name, isFull: isFull))
        transport.events?.routeFound(sighting, by: transport)
        return sighting
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

    func run(_ duration: Duration) throws { try network.run(for: duration) }

    // MARK: Bytes

    func send(_ bytes: [UInt8]) throws {
        pipe.receive(bytes)
        try loop.runQueued()
    }

    func send(_ type: FrameType, _ payload: [UInt8] = []) throws { try send(Frames.frame(type, payload)) }

    func send(close code: UInt16) throws { try send(.close, [UInt8(code >> 8), UInt8(code & 0xFF), 0]) }

    /// The bytes that the session has written since the last call of this.
    func takeOutput() -> [UInt8] { pipe.takeWritten() }

    /// Returns the frames that the session has written since the last call of this. There must be no other bytes.
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

    /// The code of the goodbye that the session has written last.
    func takeCloseCode() throws -> UInt16? {
        guard let close = try takeFrames().last, close.type == FrameType.close.rawValue else { return nil }
        return UInt16(close.payload[0]) << 8 | UInt16(close.payload[1])
    }

    // MARK: Common beginnings

    /// A session that is connected to this peer.
    static func connected(
        _ hello: Hello = ScriptedPeer.hello, adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> ScriptedPeer {
        let peer = try ScriptedPeer(adjust: adjust)
        try peer.beginConversation(hello)
        return peer
    }

    /// A session that has lost its link to this peer, and asks to resume the conversation.
    static func asking() throws -> ScriptedPeer {
        let peer = try connected()
        try peer.losesLinkAndAsks()
        return peer
    }

    /// A session to which this peer has opened a pipe, and which waits for its hello.
    static func waiting() throws -> ScriptedPeer {
        let peer = try ScriptedPeer()
        try peer.open()
        try peer.send(preface)
        _ = peer.takeOutput()
        return peer
    }

    /// The payload of an invitation to conversation 9 that lasts 30 s.
    static func invitation(number: UInt8) -> [UInt8] {
        [UInt8](repeating: 9, count: 8) + [0, 0, 0, 0, 0, 0, 0, number] + standing + [0, 0, 0x75, 0x30, 0, 0]
    }

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
        probe.invite(at: Self.address)
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
}
