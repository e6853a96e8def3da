@testable import NighCore

/// Frames as tests write them, independent of the code that writes them for sessions.
enum Frames {
    static func frame(_ type: UInt8, _ payload: [UInt8] = []) -> [UInt8] {
        header(type, payload.count) + payload
    }

    static func frame(_ type: FrameType, _ payload: [UInt8] = []) -> [UInt8] { frame(type.rawValue, payload) }

    static func header(_ type: UInt8, _ length: Int) -> [UInt8] {
        [UInt8(length >> 16 & 0xFF), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF), type]
    }

    static func hello(
        seed: UInt8 = 1, incarnation: UInt64 = 1, service: ServiceName = "test", name: String = "somebody",
        versions: ClosedRange<UInt8> = 1...1, maximumFrame: Int = 16_384, maximumMessage: Int = 16 << 20
    ) -> Hello {
        let raw = [UInt8](repeating: seed, count: PeerID.byteCount)
        guard let peer = raw.withUnsafeBytes({ PeerID(bytes: $0) }) else { preconditionFailure() }
        var hello = Hello(
            peer: peer, incarnation: incarnation, service: service, name: DisplayName(fitting: name),
            maximumFrame: maximumFrame, maximumMessage: maximumMessage)
        hello.versions = versions
        return hello
    }

    /// Reads a payload with a reader of Core.
    static func reading<Value>(
        _ payload: [UInt8], _ read: (UnsafeRawBufferPointer) throws(WireError) -> Value
    ) throws(WireError) -> Value {
        try ByteSlice(payload).withUnsafeBytes { bytes throws(WireError) in try read(bytes) }
    }

    static func random(_ count: Int, _ generator: inout SeededGenerator) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    /// Cuts `bytes` at random places into slices, each in its own chunk, or side by side in one.
    static func cut(_ bytes: [UInt8], atMost: Int, _ generator: inout SeededGenerator) -> [ByteSlice] {
        let whole = ByteSlice(bytes)
        let shared = generator.oneIn(2)
        var slices: [ByteSlice] = []
        var position = 0
        while position < bytes.count {
            let end = min(bytes.count, position + Int.random(in: 1...atMost, using: &generator))
            slices.append(shared ? whole[position..<end] : whole[position..<end].copy())
            position = end
        }
        return slices
    }
}

/// The output of a decoder, with the parts of each piece joined.
struct Decoded: Equatable {
    struct Frame: Equatable {
        var type: UInt8
        var bytes: [UInt8]
    }

    var frames: [Frame] = []
    /// The piece that is not complete yet.
    var partial: Frame?
    var error: WireError?
    var wireBytes = 0

    /// Decodes `bytes` as any correct decoder must. Written to be simple, not fast.
    init(reference bytes: [UInt8], maximumPayload: Int) {
        var rest = bytes[...]
        while rest.count >= 4 {
            let header = Array(rest.prefix(4))
            let length = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
            let isPiece = header[3] == 0x14 || header[3] == 0x15
            guard length <= maximumPayload else {
                error = .oversize(type: header[3], length: length, limit: maximumPayload)
                return
            }
            guard !isPiece || length > 0 else {
                error = .malformed("a piece without bytes")
                return
            }
            rest = rest.dropFirst(4)
            guard rest.count >= length else {
                if isPiece, !rest.isEmpty { partial = Frame(type: header[3], bytes: Array(rest)) }
                return
            }
            frames.append(Frame(type: header[3], bytes: Array(rest.prefix(length))))
            rest = rest.dropFirst(length)
        }
    }

    init() {}

    /// Takes everything that `decoder` has. `pieceLengths` are the lengths of the pieces in the stream, in order.
    mutating func drain(_ decoder: inout FrameDecoder, pieceLengths: inout [Int]) {
        do throws(WireError) {
            while true {
                // The fast path for most whole messages; the normal path for some of them and for everything else.
                var next = frames.count % 3 == 0 ? nil : decoder.nextWholeMessage()
                if next == nil { next = try decoder.next() }
                guard let frame = next else { return }
                wireBytes += frame.wireBytes
                guard frame.type == 0x14 || frame.type == 0x15 else {
                    frames.append(Frame(type: frame.type, bytes: Array(frame.bytes)))
                    continue
                }
                let bytes = (partial?.bytes ?? []) + Array(frame.bytes)
                if bytes.count == pieceLengths.first {
                    pieceLengths.removeFirst()
                    frames.append(Frame(type: frame.type, bytes: bytes))
                    partial = nil
                } else {
                    partial = Frame(type: frame.type, bytes: bytes)
                }
            }
        } catch {
            self.error = error
        }
    }
}
