import MultipeerConnectivity

/// Streams of 10 MB each are echoed at the same time.
func streams(_ count: Int) {
    let size = 10_000_000
    let (puma, lynx) = pair()
    lynx.onStream = { stream, peer in
        guard let back = try? lynx.session.startStream(withName: "back", toPeer: peer) else { return }
        let ends = Ends(stream, back)
        Thread.detachNewThread { ends.copy() }
    }
    let total = Total()
    puma.onStream = { stream, _ in
        let ends = Ends(stream, nil)
        Thread.detachNewThread { total.add(ends.count()) }
    }
    guard puma.connect(lynx) else { return print("not connected") }
    Machine.forgetPeak()
    let before = Machine.memory.now
    let start = Date()
    for _ in 0..<count {
        guard let stream = try? puma.session.startStream(withName: "there", toPeer: lynx.id) else {
            return print("none")
        }
        let ends = Ends(nil, stream)
        Thread.detachNewThread { ends.write(size) }
    }
    total.wait(count)
    print(
        """
        \(count) streams of 10 MB there and back in one process: \(total.bytes) bytes in \(Date().timeIntervalSince(start)) s; memory \
        \(before) MiB before, at most \(Machine.memory.most) MiB
        """)
}

/// A delegate that sleeps 1 s a message, against a sender that never waits.
func slow(_ seconds: TimeInterval) {
    let (puma, lynx) = pair()
    let received = Total()
    lynx.onMessage = { data, _ in
        Thread.sleep(forTimeInterval: 1)
        received.add(data.count)
    }
    guard puma.connect(lynx) else { return print("not connected") }
    Machine.forgetPeak()
    let message = Data(count: 10_000)
    var (sent, refused) = (0, 0)
    let end = Date() + seconds
    while Date() < end {
        do {
            try puma.session.send(message, toPeers: [lynx.id], with: .reliable)
            sent += 1
        } catch MCError.unavailable {
            refused += 1
        } catch {
            return print("an unexpected error: \(error)")
        }
    }
    print(
        """
        a slow delegate for \(seconds) s: \(sent) accepted, \(refused) refused as unavailable, \(received.bytes / message.count) \
        received; still connected: \(puma.session.connectedPeers == [lynx.id]); at most \(Machine.memory.most) MiB for both sides
        """)
}

/// A resource of this many MB, whose link may be cut meanwhile: `ss -K` does so.
func resource(_ megabytes: Int) {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("trial-\(UUID().uuidString)")
    guard FileManager.default.createFile(atPath: url.path, contents: nil),
        let file = try? FileHandle(forWritingTo: url)
    else { return print("no file") }
    defer { try? FileManager.default.removeItem(at: url) }
    for _ in 0..<megabytes {
        var word = UInt64.random(in: 0 ... .max)
        let words = (0..<125_000).map { _ in
            word = word &* 6_364_136_223_846_793_005 &+ 1
            return word
        }
        words.withUnsafeBytes { file.write(Data($0)) }
    }
    let (puma, lynx) = pair()
    let isEqual = Total()
    lynx.onResource = {
        isEqual.add(FileManager.default.contentsEqual(atPath: $0.path, andPath: url.path) ? 1 : 0)
    }
    guard puma.connect(lynx) else { return print("not connected") }
    Machine.forgetPeak()
    print("begins")
    let start = Date()
    let done = Total()
    puma.session.sendResource(at: url, withName: "large", toPeer: lynx.id) { error in
        if let error { print("failed: \(error)") }
        done.add(1)
    }
    done.wait(1)
    let time = Date().timeIntervalSince(start)
    let memory = Machine.memory.most
    isEqual.wait(1)
    print(
        """
        a resource of \(megabytes) MB: \(time) s; equal: \(isEqual.bytes == 1); told of a disconnect \(puma.ended + lynx.ended) times; \
        at most \(memory) MiB
        """)
}

/// Counts from several threads.
final class Total: @unchecked Sendable {
    private let condition = NSCondition()
    private var count = 0
    private var sum = 0

    var bytes: Int { condition.withLock { sum } }

    func add(_ bytes: Int) {
        condition.withLock {
            count += 1
            sum += bytes
            condition.broadcast()
        }
    }

    func wait(_ expected: Int) {
        condition.withLock { while count < expected { condition.wait() } }
    }
}

/// The streams of one thread.
final class Ends: @unchecked Sendable {
    private let input: InputStream?
    private let output: OutputStream?
    private var buffer = [UInt8](repeating: 7, count: 32_768)

    init(_ input: InputStream?, _ output: OutputStream?) {
        self.input = input
        self.output = output
    }

    func copy() {
        input?.open()
        output?.open()
        while let input, case let count = input.read(&buffer, maxLength: buffer.count), count > 0 {
            put(count)
        }
        output?.close()
        input?.close()
    }

    func count() -> Int {
        input?.open()
        var sum = 0
        while let input, case let count = input.read(&buffer, maxLength: buffer.count), count > 0 {
            sum += count
        }
        input?.close()
        return sum
    }

    func write(_ count: Int) {
        output?.open()
        var left = count
        while left > 0 {
            put(min(left, buffer.count))
            left -= min(left, buffer.count)
        }
        output?.close()
    }

    private func put(_ count: Int) {
        buffer.withUnsafeBufferPointer { bytes in
            guard let base = bytes.baseAddress, let output else { return }
            var position = 0
            while position < count {
                let written = output.write(base + position, maxLength: count - position)
                guard written > 0 else { return }
                position += written
            }
        }
    }
}
