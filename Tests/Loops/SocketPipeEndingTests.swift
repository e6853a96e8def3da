import NighCore
import NighTestKit
import NighUV
import Testing

/// Tests all ways in which a pipe over a connected stream socket ends.
struct SocketPipeEndingTests {
    private static let reset = NighError(
        .conversing, .reset, transport: "test", advice: "is the program at the other end still running?")

    // MARK: Ended by the other end

    @Test func `The end of the other side's bytes is reported, and writing still works after it`() {
        let ground = PipeGround()
        ground.far.write([1, 2])
        ground.far.finishWriting()
        ground.expect(.bytes, .ended)
        let stream = Stream.bytes(0..<2_000_000)
        ground.end.write(stream)
        #expect(ground.far.read(stream.count) == stream)
        ground.far.close()
        #expect(ground.end.wait { ground.end.log.last == .closed(nil) })
        let log = ground.end.log.filter { $0 != .writable }
        #expect(log == [.bytes, .ended, .finished, .closed(nil)])
        #expect(ground.end.breaches == [] && !ground.end.socket.isOpen)
    }

    @Test func `A full close ends the pipe without an error, after the bytes that were sent before it`() {
        let ground = PipeGround()
        ground.far.write(Stream.bytes(0..<100_000))
        ground.far.close()
        ground.expect(.bytes, .finished, .closed(nil))
        #expect(ground.end.byteCount == 100_000)
    }

    @Test func `An end that closes with unread bytes resets the pipe, after its own bytes`() {
        let ground = PipeGround()
        ground.end.write([1, 2, 3])
        ground.far.write([4])
        ground.far.close()
        ground.expect(.bytes, .finished, .closed(Self.reset))
    }

    @Test func `A reset after the end of the bytes is also reported, although nothing is read any more`() {
        let ground = PipeGround()
        ground.far.finishWriting()
        ground.expect(.ended)
        ground.end.write([1])
        ground.far.close()
        ground.expect(.ended, .finished, .closed(Self.reset))
    }

    @Test(arguments: [false, true])
    func `A backed-up writer is notified that the other end is gone, even if it has paused`(isPaused: Bool) {
        let ground = PipeGround()
        if isPaused { ground.end.call { $0.pauseReading() } }
        ground.end.write(Stream.bytes(0..<3_000_000))
        ground.far.close()
        ground.expect(.finished, .closed(Self.reset))
    }

    /// The pipe notices it during the write, inside the call of its user.
    @Test func `A write to an end that is gone is reported in the next turn, after the bytes of that end`() {
        let ground = PipeGround()
        ground.end.call { $0.pauseReading() }
        ground.far.write([7])
        ground.far.close()
        ground.end.call { pipe in
            pipe.resumeReading()
            PipeEnd.write([1], to: pipe)
            PipeEnd.write([2], to: pipe)
        }
        ground.expect(.bytes, .finished, .closed(Self.reset))
    }

    @Test func `A pipe that breaks and is closed in the same turn reports no error`() {
        for mode in [PipeCloseMode.now, .afterWriting] {
            let ground = PipeGround()
            ground.end.call { $0.pauseReading() }
            ground.far.close()
            ground.end.call { pipe in
                PipeEnd.write([1], to: pipe)
                pipe.close(mode)
            }
            ground.waitForEvents()
            if mode == .now { ground.expect(.finished) } else { ground.expect(.finished, .drained) }
        }
    }

    // MARK: Ended by this end

    @Test func `After close(.afterWriting) a pipe sends everything and its end, and waits for the other end`()
    {
        let ground = PipeGround()
        let stream = Stream.bytes(0..<3_000_000)
        ground.end.write(stream)
        ground.end.close(.afterWriting)
        // Bytes that arrive meanwhile must neither block the other end nor reset it.
        ground.far.write([1, 2, 3])
        // A pipe that nobody retains goes on to its end.
        ground.end.release()
        #expect(ground.far.read(stream.count, pieceLimit: 10_000) == stream)
        #expect(ground.far.isAtEnd)
        ground.far.write([4, 5])
        ground.waitForEvents()
        ground.expect(.drained)
        #expect(ground.end.pipeIsAlive)
        ground.far.close()
        ground.expect(.drained, .finished)
        #expect(!ground.end.pipeIsAlive)
    }

    @Test func `A pipe whose other end has finished writing is over as soon as all bytes are sent`() {
        let ground = PipeGround()
        ground.far.finishWriting()
        ground.expect(.ended)
        let stream = Stream.bytes(0..<1_000_000)
        ground.end.write(stream)
        ground.end.close(.afterWriting)
        #expect(ground.far.read(stream.count) == stream)
        #expect(ground.far.isAtEnd)
        ground.expect(.ended, .drained, .finished)
    }

    @Test func `After close(.afterWriting) a pipe gives up if the reader never reads, or never ends`() {
        for size in [10, 3_000_000] {
            // Longer than the thread of the loop may have to wait for a processor.
            let ground = PipeGround(lingerTime: .milliseconds(500))
            let lingers = Guarded(false)
            ground.end.call { $0.beganToLinger = { _ in lingers.withLock { $0 = true } } }
            ground.end.call { $0.pauseReading() }
            ground.end.write(Stream.bytes(0..<size))
            ground.far.write([1])
            ground.end.close(.afterWriting)
            if size == 10 { ground.expect(.drained, .finished) } else { ground.expect(.finished, .drained) }
            // Only the pipe that has sent everything reported that it lingers.
            #expect(lingers.withLock { $0 } == (size == 10))
            let got = ground.far.read(size + 1)
            #expect(size == 10 ? got.count == 10 : got.count < size)
            #expect(got == Stream.bytes(0..<got.count))
            // The far end wrote something that nobody has read; it must not be reset for that.
            #expect(ground.far.isAtEnd)
        }
    }

    @Test(arguments: [false, true])
    func `A lingering pipe is over if its other end closes or its transport aborts it`(isAborted: Bool) {
        let ground = PipeGround()
        ground.end.write(Stream.bytes(0..<3_000_000))
        ground.end.close(.afterWriting)
        if isAborted { ground.end.call { $0.fail(with: Self.reset) } } else { ground.far.close() }
        ground.expect(.finished, .drained)
    }

    @Test func `After close(.now) a pipe drops waiting bytes, is over at once, and reports nothing more`() {
        let ground = PipeGround()
        ground.end.write(Stream.bytes(0..<3_000_000))
        ground.far.write([1])
        ground.end.close(.now)
        #expect(ground.end.log.last == .finished && !ground.end.socket.isOpen)
        let before = ground.end.log
        ground.end.call { pipe in
            pipe.close(.now)
            pipe.close(.afterWriting)
            pipe.pauseReading()
            pipe.resumeReading()
            PipeEnd.write([1], to: pipe)
            pipe.fail(with: Self.reset)
            pipe.finish()
        }
        #expect(ground.far.read(3_000_000).count < 3_000_000)
        ground.waitForEvents()
        #expect(ground.end.log == before && ground.end.breaches == [])
        #expect(ground.end.call { $0.counters.bytesWaiting } == 0)
    }

    @Test func `A handler that closes when it receives bytes is not called again for other bytes`() {
        let ground = PipeGround { $0.close(.afterWriting) }
        ground.far.write(Stream.bytes(0..<1_000))
        #expect(ground.far.isAtEnd)
        ground.far.write(Stream.bytes(0..<100_000))
        ground.far.close()
        ground.expect(.bytes, .drained, .finished)
    }

    @Test(arguments: [false, true])
    func `A pipe that its transport finishes is over at once, and only its owner is notified`(
        isLingering: Bool
    ) {
        let ground = PipeGround()
        ground.end.write(Stream.bytes(0..<3_000_000))
        if isLingering { ground.end.close(.afterWriting) }
        ground.end.finish()
        #expect(ground.end.log == [.finished])
        ground.waitForEvents()
        ground.expect(.finished)
    }

    @Test func `A lingering pipe that is over with unread bytes does not reset the other end`() {
        let ground = PipeGround()
        ground.end.write([1, 2])
        ground.end.close(.afterWriting)
        // In one turn, so that the pipe cannot read it before.
        ground.end.call { [far = ground.far] pipe in
            far.write([3])
            pipe.finish()
        }
        #expect(ground.far.read(2) == [1, 2])
        #expect(ground.far.isAtEnd)
    }

    @Test func `A pipe that its transport aborts reports that error in a later turn, and nothing else`() {
        let reason = NighError(
            .conversing, .unavailable("the cable was pulled out"), transport: "test", advice: "put it back")
        let ground = PipeGround()
        ground.far.write([1])
        ground.waitForEvents()
        ground.end.call { pipe in
            pipe.fail(with: reason)
            pipe.fail(with: Self.reset)
            PipeEnd.write([1], to: pipe)
        }
        ground.expect(.bytes, .finished, .closed(reason))
    }

    @Test func `A pipe that is aborted and finished in one turn reports nothing`() {
        let ground = PipeGround()
        ground.end.call { pipe in
            pipe.fail(with: Self.reset)
            pipe.finish()
        }
        ground.waitForEvents()
        ground.expect(.finished)
    }

    @Test(arguments: [false, true])
    func `A loop that ends closes the sockets of its pipes without any report`(isLingering: Bool) {
        let ground = PipeGround()
        ground.end.write(Stream.bytes(0..<3_000_000))
        if isLingering { ground.end.close(.afterWriting) }
        ground.end.release()
        ground.loop.shutdown()
        #expect(!ground.end.socket.isOpen && ground.end.log == [])
        #expect(ground.far.read(3_000_000).count < 3_000_000)
    }
}
