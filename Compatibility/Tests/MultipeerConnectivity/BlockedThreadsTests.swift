#if os(Linux)
    import MultipeerConnectivity
    import Testing

    /// A program with threads of its own, while all those of `DispatchQueue.global()` are blocked, on which Linux has
    /// Swift's tasks as well.
    ///
    /// `@unchecked Sendable`: nothing in it changes.
    private final class BlockedProgram: @unchecked Sendable {
        let puma: Device
        let lynx: Device
        private let gate = DispatchSemaphore(value: 0)
        private let hasRead = DispatchSemaphore(value: 0)
        private let hasBegun = DispatchSemaphore(value: 0)
        private let isOver = DispatchSemaphore(value: 0)

        init() {
            let service = Device.service()
            (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
            lynx.onStream = { [hasRead] stream, _, _ in
                Thread.detachNewThread { [stream = Passed(stream)] in
                    stream.value.open()
                    var buffer = [UInt8](repeating: 0, count: 8)
                    precondition(stream.value.read(&buffer, maxLength: buffer.count) == 3)
                    hasRead.signal()
                }
            }
            lynx.onProgress = { [hasBegun] _ in hasBegun.signal() }
        }

        /// Blocks more threads than the queue ever has.
        func block() { for _ in 0..<512 { DispatchQueue.global().async { [gate] in gate.wait() } } }

        func unblock() { for _ in 0..<512 { gate.signal() } }

        private func wait(for event: DispatchSemaphore) {
            precondition(event.wait(timeout: .now() + 60) == .success)
        }

        func useStream() throws {
            let output = try puma.session.startStream(withName: "three", toPeer: lynx.id)
            output.open()
            precondition(output.write([1, 2, 3], maxLength: 3) == 3)
            wait(for: hasRead)
        }

        func sendResource() throws {
            let url = try file(100_000)
            puma.session.sendResource(at: url, withName: "small", toPeer: lynx.id) { [isOver] error in
                precondition(error == nil)
                isOver.signal()
            }
            wait(for: hasBegun)
            wait(for: isOver)
        }

        func cancelResource() throws {
            let url = try file(4_000_000_000)
            let progress = puma.session.sendResource(at: url, withName: "large", toPeer: lynx.id) {
                [isOver] error in
                precondition((error as? MCError)?.code == .cancelled)
                isOver.signal()
            }
            wait(for: hasBegun)
            progress?.cancel()
            wait(for: isOver)
        }

        /// A file without blocks on the disk.
        private func file(_ size: UInt64) throws -> URL {
            let url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            precondition(FileManager.default.createFile(atPath: url.path, contents: nil))
            let handle = try FileHandle(forWritingTo: url)
            try handle.truncate(atOffset: size)
            try handle.close()
            return url
        }
    }

    @Suite("A program that blocks all threads of DispatchQueue.global()", .timeLimit(.minutes(10)))
    struct BlockedThreadsTests {
        @Test("gets streams and resources, and cancels resources")
        func blocked() async {
            await #expect(processExitsWith: .success) {
                let program = BlockedProgram()
                await program.puma.connect(program.lynx)
                program.block()
                try program.useStream()
                try program.sendResource()
                try program.cancelResource()
                program.unblock()
            }
        }
    }
#endif
