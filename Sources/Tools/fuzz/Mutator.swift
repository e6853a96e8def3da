import NighCore

/// Makes invalid input from valid input. Some of its changes know the structure of a frame, and some do not.
///
/// Everything it does follows from its seed.
struct Mutator {
    var generator: SeededGenerator
    /// Frames of all scenarios, to insert into others.
    private let frames: [[UInt8]]
    private let scenarios: [Scenario]

    init(seed: UInt64, scenarios: [Scenario], frames: [[UInt8]]) {
        generator = SeededGenerator(seed: seed)
        self.scenarios = scenarios
        self.frames = frames
    }

    static func frames(of scenarios: [Scenario]) -> [[UInt8]] {
        scenarios.flatMap(\.events).compactMap { event in
            if case .bytes(_, let bytes) = event, bytes.count < 1_000 { bytes } else { nil }
        }
    }

    mutating func number(below limit: Int) -> Int { Int(generator.next() % UInt64(max(limit, 1))) }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[number(below: elements.count)]
    }

    // MARK: Bytes

    /// Numbers at which code tends to fail.
    static let edges: [UInt64] = [
        0, 1, 2, 3, 4, 7, 8, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 8_191, 8_192, 8_193, 16_384,
        40_000,
        40_001, 0x7F_FFFF, 0xFF_FFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, 0xFFFF_FFFF,
        0x7FFF_FFFF_FFFF_FFFE,
        0x7FFF_FFFF_FFFF_FFFF, 0x8000_0000_0000_0000, 0xFFFF_FFFF_FFFF_FFFE, 0xFFFF_FFFF_FFFF_FFFF,
    ]

    private static let types: [UInt8] = [
        0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15,
        0x16, 0x17, 0x18, 0x19, 0x20, 0x21, 0x7F, 0x80, 0xFF,
    ]

    /// Changes a frame (header and payload) in one way.
    mutating func mutate(_ bytes: inout [UInt8]) {
        guard !bytes.isEmpty else {
            bytes = pick(frames)
            return
        }
        switch number(below: 14) {
        case 0, 1: bytes[number(below: bytes.count)] ^= 1 << UInt8(number(below: 8))
        case 2: bytes[number(below: bytes.count)] = UInt8(truncatingIfNeeded: pick(Self.edges))
        case 3, 4, 5: writeNumber(into: &bytes)
        case 6: editLength(of: &bytes)
        case 7: if bytes.count >= 4 { bytes[3] = pick(Self.types) }
        case 8:
            bytes.removeLast(number(below: bytes.count))
            if number(below: 2) == 0 { fixLength(of: &bytes) }
        case 9:
            let garbage = (0...number(below: 12)).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            bytes.insert(contentsOf: garbage, at: number(below: bytes.count + 1))
            if number(below: 2) == 0 { fixLength(of: &bytes) }
        case 10:
            let start = number(below: bytes.count)
            bytes.removeSubrange(start..<min(bytes.count, start + 1 + number(below: 8)))
            if number(below: 2) == 0 { fixLength(of: &bytes) }
        case 11:
            let other = pick(frames)
            bytes.replaceSubrange(number(below: bytes.count)..., with: other[number(below: other.count)...])
            if number(below: 2) == 0 { fixLength(of: &bytes) }
        case 12: bytes = pick(frames)
        default: bytes += bytes.prefix(4_000)
        }
    }

    /// Writes an edge number, or a number near the present one, over 1, 2, 4 or 8 bytes, mostly where a field begins.
    private mutating func writeNumber(into bytes: inout [UInt8]) {
        let width = pick([1, 2, 4, 8, 8])
        guard bytes.count >= 4 + width else { return }
        let isAligned = number(below: 4) > 0
        let start =
            isAligned
            ? 4 + number(below: (bytes.count - 4) / width) * width : number(below: bytes.count - width + 1)
        guard start + width <= bytes.count else { return }
        let present = bytes[start..<start + width].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        let choices: [UInt64] = [
            pick(Self.edges), present &+ 1, present &- 1, present &+ UInt64(number(below: 64)),
        ]
        let value = pick(choices)
        for index in 0..<width {
            bytes[start + index] = UInt8(truncatingIfNeeded: value >> UInt64(8 * (width - 1 - index)))
        }
    }

    private mutating func editLength(of bytes: inout [UInt8]) {
        guard bytes.count >= 4 else { return }
        let present = bytes.count - 4
        let length = pick([
            0, 1, present - 1, present + 1, present + number(below: 300), Int(pick(Self.edges) & 0xFF_FFFF),
        ])
        write(length: max(0, length), to: &bytes)
    }

    private func fixLength(of bytes: inout [UInt8]) {
        if bytes.count >= 4 { write(length: bytes.count - 4, to: &bytes) }
    }

    private func write(length: Int, to bytes: inout [UInt8]) {
        bytes[0] = UInt8(truncatingIfNeeded: length >> 16)
        bytes[1] = UInt8(truncatingIfNeeded: length >> 8)
        bytes[2] = UInt8(truncatingIfNeeded: length)
    }

    // MARK: Streams

    /// Returns the frames that arrived on the first pipe of a scenario, changed.
    mutating func stream() -> [[UInt8]] {
        var frames: [[UInt8]] = []
        while frames.isEmpty {
            for case .bytes(0, let bytes) in pick(scenarios).events { frames.append(bytes) }
        }
        for _ in 0..<number(below: 5) {
            let index = number(below: frames.count)
            switch number(below: 8) {
            case 0: frames.insert(frames[index], at: number(below: frames.count + 1))
            case 1: if frames.count > 1 { frames.remove(at: index) }
            case 2: frames.swapAt(index, number(below: frames.count))
            case 3: frames.insert(pick(self.frames), at: index)
            default: mutate(&frames[index])
            }
        }
        return frames
    }

    /// Returns `bytes` in slices that are cut at random, byte by byte, or not at all.
    mutating func cut(_ bytes: [UInt8]) -> [ByteSlice] {
        guard !bytes.isEmpty else { return [] }
        let whole = ByteSlice(bytes)
        let most: Int
        switch number(below: 8) {
        case 0...3: return [whole]
        case 4 where bytes.count < 200: most = 1
        case 5: most = 16
        default: most = 2_000
        }
        var slices: [ByteSlice] = []
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + 1 + number(below: most))
            slices.append(number(below: 2) == 0 ? whole[start..<end] : whole[start..<end].copy())
            start = end
        }
        return slices
    }

    // MARK: Scenarios

    /// Returns a changed scenario.
    mutating func scenario() -> Scenario {
        var scenario = pick(scenarios)
        if number(below: 8) == 0 { scenario.behavior.answer = pick([.accept, .decline, .none]) }
        if number(below: 16) == 0 { scenario.behavior.readsInbox.toggle() }
        for _ in 0...number(below: 6) { mutate(&scenario.events) }
        if number(below: 4) == 0 { mergeBytes(&scenario.events) }
        return scenario
    }

    private mutating func mutate(_ events: inout [Event]) {
        guard !events.isEmpty else { return }
        let index = number(below: events.count)
        switch number(below: 20) {
        case 0: events.insert(events[index], at: number(below: events.count + 1))
        case 1: events.remove(at: index)
        case 2: events.swapAt(index, number(below: events.count))
        case 3: events.swapAt(index, max(0, index - 1))
        case 4: events.insert(happening(), at: index)
        case 5: events.insert(.act(pick(Action.allCases)), at: index)
        case 6: events.insert(.bytes(number(below: 3), pick(frames)), at: index)
        case 7: events.removeSubrange(index...)
        case 8:
            // Continues here with events of another scenario, on a pipe of its own.
            let other = pick(scenarios).events
            events.insert(contentsOf: [.open] + other.suffix(number(below: other.count)), at: index)
        case 9:
            switch events[index] {
            case .bytes(_, let bytes): events[index] = .bytes(number(below: 3), bytes)
            case .packet(_, let packet, let source):
                events[index] = .packet(
                    number(below: 3), packet, oneIn(2) ? source : DatagramSource(generator.next()))
            default: break
            }
        case 10:
            if case .bytes(let pipe, let bytes) = events[index] {
                let slices = cut(bytes).prefix(100).map { Event.bytes(pipe, $0.bytes) }
                events.replaceSubrange(index...index, with: slices)
            }
        default:
            for offset in 0..<events.count {
                let place = (index + offset) % events.count
                switch events[place] {
                case .bytes(let pipe, var bytes):
                    mutate(&bytes)
                    events[place] = .bytes(pipe, bytes)
                    return
                case .packet(let pipe, let packet, let source):
                    events[place] = .packet(pipe, changed(packet: packet), source)
                    return
                default: break
                }
            }
        }
    }

    /// Changes a packet, mostly so that its checksum is valid again.
    private mutating func changed(packet: [UInt8]) -> [UInt8] {
        guard let (content, number, connection) = PacketTarget.unsealed(packet), !oneIn(8) else {
            return perhapsChanged(packet, with: [packet])
        }
        let changed = perhapsChanged(
            oneIn(4) ? pick(PacketTarget.contents) : content, with: PacketTarget.contents)
        let numbers = [number, number &+ 1, number &+ 1_024, number &+ 5_000, pick(Self.edges)]
        return PacketTarget.sealed(
            changed, number: oneIn(2) ? number &+ 1 : pick(numbers), connection: connection)
    }

    private mutating func happening() -> Event {
        switch number(below: 12) {
        case 0: .open
        case 1: .answer
        case 2: .refuse
        case 3: .cut(number(below: 3))
        case 4: .end(number(below: 3))
        case 5: .block(number(below: 3), true)
        case 6: .block(number(below: 3), false)
        case 7: .sight(number(below: 2) == 0)
        default: .pass(milliseconds: pick([0, 1, 100, 250, 1_000, 5_000, 10_000, 15_000, 30_000]))
        }
    }

    /// Joins consecutive bytes of a pipe into one read.
    private func mergeBytes(_ events: inout [Event]) {
        var merged: [Event] = []
        for event in events {
            if case .bytes(let pipe, let bytes) = event, case .bytes(pipe, let before)? = merged.last {
                merged[merged.count - 1] = .bytes(pipe, before + bytes)
            } else {
                merged.append(event)
            }
        }
        events = merged
    }
}
