import NighCore
import NighWeb

/// The frames that a browser sends, changed and cut anywhere, beside the simplest reader of them.
enum WebSocketTarget {
    /// The messages, pings and end that a reader has found in the bytes.
    private struct Found: Equatable {
        var bytes: [UInt8] = []
        var ends: [Int] = []
        var pings: [[UInt8]] = []
        var hasClosed = false
        var code: WebSocketCode?
    }

    /// Returns how many messages were whole.
    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Int {
        var wire: [UInt8] = []
        for _ in 0...mutator.number(below: 4) {
            let parts = 1 + mutator.number(below: 3)
            for part in 0..<parts {
                let isLast = part == parts - 1
                wire += frame(
                    part == 0 ? 2 : 0, isLast: isLast, mutator.pick([0, 1, 5, 125, 126, 700]), &mutator)
                if mutator.oneIn(4) {
                    wire += frame(mutator.pick([9, 10]), isLast: true, mutator.pick([0, 3, 125]), &mutator)
                }
            }
        }
        if mutator.oneIn(8) { wire += frame(8, isLast: true, 2, &mutator) }
        if mutator.oneIn(16) { wire += frame(2, isLast: true, 65_536, &mutator) }
        if !mutator.oneIn(6) {
            for _ in 0...mutator.number(below: 3) { mutator.change(&wire, with: headers) }
        }
        let expected = plain(wire)
        let found = read(mutator.cut(wire))
        if found != expected {
            throw Finding(
                "\(found.bytes.count) bytes, \(found.ends), \(String(describing: found.code)); expected "
                    + "\(expected.bytes.count), \(expected.ends), \(String(describing: expected.code))")
        }
        return found.ends.count
    }

    /// Beginnings of frames that are often wrong.
    private static let headers: [[UInt8]] = [
        [0x82, 0xFE, 0, 5, 1, 2, 3, 4], [0x82, 0xFF, 0, 0, 0, 0, 0, 1, 0, 1, 1, 2, 3, 4],
        [0x82, 0xFF] + [UInt8](repeating: 0xFF, count: 12),
        [0x80, 0xFF, 0x80] + [UInt8](repeating: 0, count: 11),
        [0x88, 0x80, 1, 2, 3, 4], [0x09, 0x81, 0, 0, 0, 0, 7], [0x81, 0x81, 0, 0, 0, 0, 65],
        [0x00, 0x80, 0, 0, 0, 0],
    ]

    private static func frame(_ operation: UInt8, isLast: Bool, _ count: Int, _ mutator: inout Mutator)
        -> [UInt8]
    {
        let payload = mutator.bytes(min(count, 700)) + [UInt8](repeating: 1, count: max(0, count - 700))
        let mask = mutator.bytes(4)
        let length: [UInt8] =
            switch count {
            case 0..<126: [0x80 | UInt8(count)]
            case 126..<65_536: [0xFE, UInt8(count >> 8), UInt8(count & 0xFF)]
            default: [0xFF, 0, 0, 0, 0] + (0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - 8 * $0)) }
            }
        return [(isLast ? 0x80 : 0) | operation] + length + mask
            + payload.enumerated().map { $1 ^ mask[$0 % 4] }
    }

    private static func read(_ slices: [ByteSlice]) -> Found {
        var reader = WebSocketReader()
        var found = Found()
        do throws(WebSocketCode) {
            for slice in slices {
                // The reader changes what it is given.
                reader.append(slice.copy())
                while let event = try reader.next() {
                    switch event {
                    case .bytes(let bytes, let endsMessage):
                        found.bytes += bytes.bytes
                        if endsMessage { found.ends.append(found.bytes.count) }
                    case .ping(let bytes): found.pings.append(bytes)
                    case .close:
                        found.hasClosed = true
                        return found
                    }
                }
            }
        } catch {
            found.code = error
        }
        return found
    }

    /// Reads `wire` frame by frame, as section 5 of RFC 6455 says.
    private static func plain(_ wire: [UInt8]) -> Found {
        var found = Found()
        var rest = wire[...]
        var length: Int?
        func failed(_ code: WebSocketCode) -> Found {
            var found = found
            found.code = code
            return found
        }
        while rest.count >= 2 {
            let bytes = Array(rest.prefix(14))
            let (operation, isLast) = (bytes[0] & 15, bytes[0] >> 7 == 1)
            guard bytes[0] >> 4 & 7 == 0, bytes[1] >> 7 == 1 else { return failed(.protocolError) }
            let short = bytes[1] & 0x7F
            let start = 2 + (short == 126 ? 2 : short == 127 ? 8 : 0)
            guard bytes.count >= start + 4 else { return found }
            var count = UInt64(short)
            if short > 125 {
                count = 0
                for byte in bytes[2..<start] { count = count << 8 | UInt64(byte) }
            }
            let least: UInt64 = short == 126 ? 126 : short == 127 ? 65_536 : 0
            guard [0, 1, 2, 8, 9, 10].contains(operation), count >= least else {
                return failed(.protocolError)
            }
            let isControl = operation >= 8
            if isControl, !isLast || count > 125 { return failed(.protocolError) }
            if operation == 1 { return failed(.unsupportedData) }
            if !isControl {
                guard (operation == 0) == (length != nil) else { return failed(.protocolError) }
                guard count <= 65_536, (length ?? 0) + Int(count) <= 65_536 else { return failed(.tooBig) }
                length = (length ?? 0) + Int(count)
            }
            let mask = bytes[start..<start + 4]
            let masked = rest.dropFirst(start + 4).prefix(Int(count))
            let payload = masked.enumerated().map { $1 ^ mask[start + $0 % 4] }
            let isWhole = payload.count == Int(count)
            if !isControl { found.bytes += payload }
            guard isWhole else { return found }
            rest = rest.dropFirst(start + 4 + Int(count))
            switch operation {
            case 8:
                found.hasClosed = true
                return found
            case 9: found.pings.append(payload)
            case 0, 2:
                guard isLast else { continue }
                found.ends.append(found.bytes.count)
                length = nil
            default: break
            }
        }
        return found
    }
}
