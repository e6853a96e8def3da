import MultipeerConnectivity
import Testing

/// Rows 40 to 45 of the table in the guide: streams.
@Suite("Streams", .timeLimit(.minutes(10))) struct StreamTests {
    private let service = Device.service()

    private func connected() async -> (Device, Device) {
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        await puma.connect(lynx)
        return (puma, lynx)
    }

    /// Opens a stream between two devices, has `write` write to it, and returns all bytes that arrive until the stream
    /// ends.
    private func bytesArriving(from write: (OutputStream) -> Void) async throws -> [UInt8] {
        let (puma, lynx) = await connected()
        let reader = ThreadReader()
        lynx.onStream = { stream, _, _ in reader.read(stream) }
        write(try puma.session.startStream(withName: "numbers", toPeer: lynx.id))
        let bytes = try await reader.result()
        await lynx.wait(for: .stream(puma.id, "numbers"))
        puma.end()
        lynx.end()
        return bytes
    }

    @Test(
        "that are written and closed at once arrive whole, and then end",
        arguments: [1, 1_000, 70_000, 1_048_576])
    func writtenAtOnce(count: Int) async throws {
        let bytes = Bytes.pattern(count)
        let arrived = try await bytesArriving { output in
            // Blocks where there is no room.
            Thread.detachNewThread { [output = Passed(output)] in
                output.value.open()
                ThreadReader.write(bytes, to: output.value)
                output.value.close()
            }
        }
        #expect(arrived == bytes)
    }

    @Test("keep what comes before they are opened, and tell their delegate on a run loop that sleeps")
    func events() async throws {
        let (puma, lynx) = await connected()
        let received = Held<InputStream>()
        lynx.onStream = { stream, _, _ in received.give(stream) }
        let output = try puma.session.startStream(withName: "later", toPeer: lynx.id)
        let bytes = Bytes.pattern(65_536)
        output.open()
        Thread.detachNewThread { [output = Passed(output)] in
            ThreadReader.write(bytes, to: output.value)
            output.value.close()
        }
        let input = try await received.value()
        #expect(input.streamStatus == .notOpen)
        let collector = EventCollector()
        input.delegate = collector
        LoopThread.shared.perform { [input = Passed(input)] loop in
            input.value.schedule(in: loop, forMode: .default)
            input.value.open()
        }
        #expect(try await collector.result() == bytes)
        #expect(collector.kinds.first == .openCompleted && collector.kinds.last == .endEncountered)
        puma.end()
        lynx.end()
    }

    @Test("have bytes available while some wait, and none before they are opened or at their end")
    func available() async throws {
        let (puma, lynx) = await connected()
        let received = Held<InputStream>()
        lynx.onStream = { stream, _, _ in received.give(stream) }
        let output = try puma.session.startStream(withName: "three", toPeer: lynx.id)
        output.open()
        ThreadReader.write([1, 2, 3], to: output)
        let input = try await received.value()
        #expect(!input.hasBytesAvailable)
        input.open()
        await look { input.hasBytesAvailable }
        var buffer = [UInt8](repeating: 0, count: 10)
        #expect(input.read(&buffer, maxLength: 10) == 3 && !input.hasBytesAvailable)
        output.close()
        // Waits for the end.
        #expect(input.read(&buffer, maxLength: 10) == 0)
        #expect(!input.hasBytesAvailable && input.streamStatus == .atEnd)
        puma.end()
        lynx.end()
    }

    @Test("that have room take all that they are given in one call")
    func writtenInOneCall() async throws {
        let bytes = Bytes.pattern(1_048_576)
        let arrived = try await bytesArriving { output in
            output.open()
            #expect(output.write(bytes, maxLength: bytes.count) == bytes.count)
            output.close()
        }
        #expect(arrived == bytes)
    }

    @Test("written when their delegate is told of room arrive whole")
    func writtenByEvents() async throws {
        let bytes = Bytes.pattern(500_000)
        let writer = EventWriter(bytes)
        let arrived = try await bytesArriving { output in
            output.delegate = writer
            LoopThread.shared.perform { [output = Passed(output)] loop in
                output.value.schedule(in: loop, forMode: .default)
                output.value.open()
            }
        }
        #expect(arrived == bytes)
        #expect(writer.kinds.first == .openCompleted)
    }

    @Test("of one name go both ways at once, and one that nobody reads holds up no other")
    func many() async throws {
        let (puma, lynx) = await connected()
        let isFirst = NSLock()
        let unread = Held<InputStream>()
        // The first is never read, the others are echoed.
        lynx.onStream = { [unowned lynx, id = puma.id] stream, name, _ in
            if name == "unread" { return unread.give(stream) }
            guard let back = try? lynx.session.startStream(withName: name, toPeer: id) else { return }
            Thread.detachNewThread { [pair = Passed((stream, back))] in
                _ = isFirst
                pair.value.0.open()
                pair.value.1.open()
                ThreadReader.copy(pair.value.0, to: pair.value.1)
            }
        }
        let readers = (0..<20).map { _ in ThreadReader() }
        let next = Counter()
        puma.onStream = { stream, _, _ in readers[next.take()].read(stream) }
        let stuck = try puma.session.startStream(withName: "unread", toPeer: lynx.id)
        Thread.detachNewThread { [stuck = Passed(stuck)] in
            stuck.value.open()
            ThreadReader.write([UInt8](repeating: 0, count: 4 << 20), to: stuck.value)
        }
        for index in 0..<20 {
            let stream = try puma.session.startStream(withName: "echo", toPeer: lynx.id)
            Thread.detachNewThread { [stream = Passed(stream)] in
                stream.value.open()
                ThreadReader.write([UInt8](repeating: UInt8(index), count: 300_000), to: stream.value)
                stream.value.close()
            }
        }
        var seen: Set<UInt8> = []
        for reader in readers {
            let bytes = try await reader.result()
            #expect(bytes.count == 300_000 && Set(bytes).count == 1)
            seen.insert(bytes[0])
        }
        #expect(seen.count == 20)
        _ = try await unread.value()
        puma.end()
        lynx.end()
    }

    @Test("end at both ends when their peer is no longer connected, and cannot be started without one")
    func disconnected() async throws {
        let (puma, lynx) = await connected()
        let received = Held<InputStream>()
        lynx.onStream = { stream, _, _ in received.give(stream) }
        let output = try puma.session.startStream(withName: "x", toPeer: lynx.id)
        output.open()
        #expect(output.hasSpaceAvailable)
        ThreadReader.write([1, 2, 3], to: output)
        let input = try await received.value()
        let reader = ThreadReader()
        reader.read(input)
        lynx.session.disconnect()
        await puma.wait(for: .state(lynx.id, .notConnected))
        _ = try await reader.result()
        await look { output.streamError != nil }
        #expect(output.streamStatus == .error && !output.hasSpaceAvailable)
        #expect(throws: MCError.self) { try puma.session.startStream(withName: "y", toPeer: lynx.id) }
        puma.end()
        lynx.end()
    }
}
