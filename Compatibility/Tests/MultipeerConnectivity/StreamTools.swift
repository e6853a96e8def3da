import MultipeerConnectivity

enum Bytes {
    /// Bytes in which a lost or doubled piece shows: their period is a prime number.
    static func pattern(_ count: Int) -> [UInt8] {
        let period = (0..<4_093).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + period.count)
        while bytes.count < count { bytes += period }
        bytes.removeLast(bytes.count - count)
        return bytes
    }
}

final class Counter: @unchecked Sendable {
    private let lock = NSLock()
    private var next = 0

    func take() -> Int {
        lock.withLock {
            defer { next += 1 }
            return next
        }
    }
}

/// Reads a stream to its end on a thread of its own that blocks.
final class ThreadReader: @unchecked Sendable {
    private let held = Held<[UInt8]>()

    func read(_ stream: InputStream) {
        let held = held
        Thread.detachNewThread { [stream = Passed(stream)] in
            stream.value.open()
            var all: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 16_384)
            while true {
                let count = stream.value.read(&buffer, maxLength: buffer.count)
                guard count > 0 else { break }
                all += buffer[..<count]
            }
            stream.value.close()
            held.give(all)
        }
    }

    func result() async throws -> [UInt8] { try await held.value() }

    static func write(_ bytes: [UInt8], to stream: OutputStream) {
        bytes.withUnsafeBufferPointer { buffer in
            var position = 0
            while position < buffer.count {
                let count = stream.write(buffer.baseAddress! + position, maxLength: buffer.count - position)
                guard count > 0 else { return }
                position += count
            }
        }
    }

    static func copy(_ input: InputStream, to output: OutputStream) {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = input.read(&buffer, maxLength: buffer.count)
            guard count > 0 else { break }
            write(Array(buffer[..<count]), to: output)
        }
        output.close()
        input.close()
    }
}

/// Reads a stream as its events arrive.
final class EventCollector: NSObject, StreamDelegate, @unchecked Sendable {
    private let held = Held<[UInt8]>()
    private var all: [UInt8] = []
    private(set) var kinds: [Stream.Event] = []

    func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
        kinds.append(eventCode)
        switch eventCode {
        case .hasBytesAvailable:
            var buffer = [UInt8](repeating: 0, count: 1_000)
            let count = (aStream as? InputStream)?.read(&buffer, maxLength: buffer.count) ?? 0
            all += buffer[..<max(count, 0)]
        case .endEncountered, .errorOccurred: held.give(all)
        default: break
        }
    }

    func result() async throws -> [UInt8] { try await held.value() }
}

/// Writes to a stream at each event that reports room.
final class EventWriter: NSObject, StreamDelegate, @unchecked Sendable {
    private var left: ArraySlice<UInt8>
    private(set) var kinds: [Stream.Event] = []

    init(_ bytes: [UInt8]) { left = bytes[...] }

    func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
        kinds.append(eventCode)
        guard eventCode == .hasSpaceAvailable, let output = aStream as? OutputStream else { return }
        guard !left.isEmpty else { return output.close() }
        let piece = Array(left.prefix(10_000))
        let count = output.write(piece, maxLength: piece.count)
        left = left.dropFirst(max(count, 0))
    }
}

/// A thread whose run loop sleeps until something happens.
final class LoopThread: @unchecked Sendable {
    static let shared = LoopThread()

    private let ready = DispatchSemaphore(value: 0)
    private var loop: RunLoop?

    private init() {
        let thread = Thread { [self] in
            loop = RunLoop.current
            RunLoop.current.add(
                Timer(fire: .distantFuture, interval: 1e9, repeats: true) { _ in }, forMode: .default)
            ready.signal()
            while true { _ = RunLoop.current.run(mode: .default, before: .distantFuture) }
        }
        thread.start()
        ready.wait()
    }

    /// Schedules from another thread, as programs do.
    func perform(_ work: (RunLoop) -> Void) { if let loop { work(loop) } }
}
