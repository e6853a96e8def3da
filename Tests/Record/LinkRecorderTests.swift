import Glibc
import NighSystem
import NighTestKit
import Testing

@testable import NighCore
@testable import NighRecord

/// Tests what recorders write, what they leave out, and what they refuse.
@Suite struct LinkRecorderTests {
    private let folder = TemporaryFolder()
    private var path: String { "\(folder.path)/a.nigh" }

    private func contents(of path: String) throws -> [UInt8] {
        let descriptor = open(path, O_RDONLY)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        let read = Read()
        read.all(of: descriptor)
        return read.bytes
    }

    private func permissions() throws -> mode_t {
        var status = stat()
        try #require(stat(path, &status) == 0)
        return status.st_mode & 0o777
    }

    @Test func `A conversation over memory is recorded from hello to close, in a private file`() throws {
        let network = SimulatedNetwork { $0.datagrams = true }
        let recorder = try LinkRecorder(path: path, headLimit: 4)
        let (puma, lynx) = (network.join(layers: [recorder]), network.join())
        try network.connect(puma, lynx)
        try puma.session.trySend(Array("hello".utf8), to: lynx.id)
        try puma.session.trySend([1], to: lynx.id, .unreliable)
        try network.run(for: .seconds(1))
        try puma.session.trySend(Array("beside".utf8), to: lynx.id, .unreliable)
        try network.run(for: .seconds(1))
        try network.close()
        #expect(recorder.finish() == nil)

        #expect(try permissions() == 0o600)
        var reader = RecordReader()
        reader.feed(try contents(of: path))
        var entries: [RecordEntry] = []
        while let entry = try reader.next() { entries.append(entry) }
        #expect(reader.headLimit == 4 && reader.unreadByteCount == 0)
        let frames = entries.compactMap { if case .frame(let frame) = $0.content { frame } else { nil } }
        let message = try #require(frames.first { $0.type == FrameType.message.rawValue })
        #expect(message.length == 5 && message.payload == ByteSlice(Array("hell".utf8)))
        #expect(frames.first?.type == FrameType.hello.rawValue)
        let packets = entries.compactMap { if case .packet(let packet) = $0.content { packet } else { nil } }
        #expect(Set(packets.map(\.direction)) == [.incoming, .outgoing])
        #expect(Set(packets.map(\.connection)).count == 2)
        let beside = try #require(packets.first { $0.content.bytes.first == 3 })
        #expect(beside.length == 8 && beside.content == ByteSlice([3, 1] + Array("bes".utf8)))
        #expect(entries.contains { if case .ended = $0.content { true } else { false } })
        #expect(entries.contains { if case .secured(lynx.id, _) = $0.content { true } else { false } })
    }

    @Test
    func `An existing file is refused and a link is not followed; on request a private file replaces it`()
        throws
    {
        let old = open(path, O_CREAT | O_WRONLY, 0o644)
        #expect(write(old, "x", 1) == 1)
        close(old)
        let error = #expect(throws: NighError.self) { try LinkRecorder(path: path) }
        #expect(error?.description.contains("a.nigh") == true && error?.advice != nil)
        #expect(try contents(of: path) == [UInt8(ascii: "x")])
        #expect(symlink("\(folder.path)/elsewhere", "\(folder.path)/b.nigh") == 0)
        #expect(throws: NighError.self) { try LinkRecorder(path: "\(folder.path)/b.nigh") }
        #expect(throws: NighError.self) { try LinkRecorder(path: "\(folder.path)/no/c.nigh") }
        #expect(try LinkRecorder(path: path, overwrites: true).finish() == nil)
        #expect(try permissions() == 0o600)
        #expect(try contents(of: path).count == RecordFormat.headerByteCount)
    }

    private static let opening = LinkEvent.opened(LinkOpening(isDialled: true, scheme: "tcp"))
    private static let preface = ByteSlice(Preface(security: .plaintext).bytes)

    private static func message(_ size: Int) -> ByteSlice {
        ByteSlice([0, UInt8(size >> 8), UInt8(size & 0xFF), 0x10] + [UInt8](repeating: 1, count: size))
    }

    @Test func `While the disk is slow the loop continues, and a gap later says what is missing`() throws {
        var ends: [Int32] = [0, 0]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        let recorder = try LinkRecorder(descriptor: ends[1], queueLimit: 20_000)
        recorder.link(1, Self.opening, at: Moment(nanoseconds: 0))
        recorder.link(1, .sent(Self.preface), at: Moment(nanoseconds: 0))
        // Far more than the socket's buffer and the queue hold.
        for number in 1...2_000 as ClosedRange<Int64> {
            recorder.link(1, .sent(Self.message(1_000)), at: Moment(nanoseconds: number))
        }
        let near = ends[0]
        // Reads it only now, on another thread, while `finish` waits.
        let reading = LoopThread()
        let read = Read()
        try reading.start { read.all(of: near) }
        recorder.link(1, .sent(Self.message(7)), at: Moment(nanoseconds: 3_000))
        #expect(recorder.finish() == nil)
        reading.join()
        close(near)
        let entries = try RecordTests.read(read.bytes)
        var (frames, missing) = (0, 0 as UInt64)
        for entry in entries {
            switch entry.content {
            case .frame: frames += 1
            case .gap(let entries, let bytes):
                missing += entries
                #expect(bytes >= entries)
            default: break
            }
        }
        #expect(missing > 0 && frames > 0)
        #expect(UInt64(frames) + missing == 2_001)
    }

    /// `@unchecked Sendable`: read only after its thread has ended.
    private final class Read: @unchecked Sendable {
        private(set) var bytes: [UInt8] = []

        func all(of descriptor: Int32) {
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while case let count = read(descriptor, &buffer, buffer.count), count > 0 {
                bytes += buffer[..<count]
            }
        }
    }

    @Test func `Packets that are left out count with their bytes`() throws {
        let queue = RecordQueue(limit: 30, beginning: [])
        let packet = RecordedPacket(
            direction: .outgoing, connection: 1, number: 2, length: 100, content: ByteSlice([3]))
        queue.add([UInt8](repeating: 0, count: 31), of: RecordEntry(time: 1, link: 1, .packet(packet)))
        queue.end()
        var bytes: [UInt8] = []
        #expect(queue.take(into: &bytes))
        let entries = try RecordTests.read(RecordFormat.header(time: 0, headLimit: nil) + bytes)
        #expect(entries.map(\.content) == [.gap(entries: 1, bytes: 116)])
    }

    @Test func `A full disk is reported at the end, and nothing waits for it`() throws {
        let recorder = try LinkRecorder(descriptor: open("/dev/full", O_WRONLY))
        recorder.link(1, Self.opening, at: Moment(nanoseconds: 0))
        #expect(recorder.finish()?.description.contains("No space") == true)
    }

    @Test func `Times start with the wall clock, and then follow the session's clock`() throws {
        var transcript = LinkTranscript(wallClock: { 1_000 })
        var times: [Int64] = []
        for moment in [500, 507, 600] as [Int64] {
            transcript.convert(
                .ended(LinkEnding(reason: "", code: nil, isByPeer: false)), on: 1,
                at: Moment(nanoseconds: moment)
            ) {
                times.append($0.time)
            }
        }
        #expect(times == [1_000, 1_007, 1_100])
    }
}
