import NighCore

/// Changes to bytes and text that are not frames.
extension Mutator {
    /// Returns true once in `chances` times, on average.
    mutating func oneIn(_ chances: Int) -> Bool { number(below: chances) == 0 }

    /// Returns `count` random bytes.
    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }

    /// Changes `bytes` in one way. `others` are valid inputs whose pieces may be put into these.
    mutating func change(_ bytes: inout [UInt8], with others: [[UInt8]]) {
        guard !bytes.isEmpty else {
            bytes = pick(others)
            return
        }
        switch number(below: 10) {
        case 0, 1: bytes[number(below: bytes.count)] ^= 1 << UInt8(number(below: 8))
        case 2, 3: bytes[number(below: bytes.count)] = UInt8(truncatingIfNeeded: pick(Self.edges))
        case 4: bytes[number(below: bytes.count)] &+= UInt8(truncatingIfNeeded: pick([1, 2, 254, 255]))
        case 5: bytes.removeLast(number(below: bytes.count))
        case 6:
            let garbage = self.bytes(number(below: 12) + 1)
            bytes.insert(contentsOf: garbage, at: number(below: bytes.count + 1))
        case 7:
            let start = number(below: bytes.count)
            bytes.removeSubrange(start..<min(bytes.count, start + 1 + number(below: 8)))
        case 8:
            let other = pick(others)
            guard !other.isEmpty else { return }
            bytes.replaceSubrange(number(below: bytes.count)..., with: other[number(below: other.count)...])
        default: bytes += bytes.prefix(3_000)
        }
    }

    /// Returns `bytes`, unchanged half of the time.
    mutating func perhapsChanged(_ bytes: [UInt8], with others: [[UInt8]]) -> [UInt8] {
        var bytes = bytes
        if oneIn(2) { for _ in 0...number(below: 3) { change(&bytes, with: others) } }
        return bytes
    }

    /// Changes `text` in one way. `pieces` are what such texts consist of.
    mutating func change(_ text: inout String, with pieces: [String]) {
        var scalars = Array(text.unicodeScalars)
        let place = number(below: scalars.count + 1)
        switch number(below: 7) {
        case 0: if place < scalars.count { scalars.remove(at: place) }
        case 1: if place < scalars.count { scalars[place] = pick(Array(pick(pieces).unicodeScalars)) }
        case 2: scalars.removeSubrange(place...)
        case 3: scalars.insert(Unicode.Scalar(UInt8(number(below: 256))), at: place)
        case 4: if scalars.count < 2_000 { scalars += scalars[..<place] }
        case 5:
            let end = min(scalars.count, place + 1 + number(below: 6))
            scalars.replaceSubrange(place..<max(place, end), with: pick(pieces).unicodeScalars)
        default: scalars.insert(contentsOf: pick(pieces).unicodeScalars, at: place)
        }
        text = ""
        text.unicodeScalars.append(contentsOf: scalars)
    }
}
