import Glibc
import NighCore
import NighTestKit
import NighUV
import Testing

/// Tests all ways in which a pipe over a connected stream socket ends.
@Suite struct SocketPipeEndingTests {
    private final class Ground {
        let loop = UVEventLoop()
        let sockets = SocketPair()
        let end: PipeEnd

        var far: BareEnd { sockets.far }

        init(lingerTime: Duration = .seconds(10), whenBytesCome: ((SocketPipe) -> Void)? = nil) {
            end = PipeEnd(sockets.near, lingerTime: lingerTime, on: loop, whenBytesCome: whenBytesCome)
        }

        deinit { loop.shutdown() }

        /// Waits until the loop has handled all descriptors that had events before this call.
        func waitForEvents() {
            let other = SocketPair()
            let marker = PipeEnd(other.near, on: loop)
            other.far.write([0])
            #expect(marker.wait { marker.byteCount == 1 })
            marker.finish()
        }
    }

    private static let reset = NighError(
        .conversing, .reset, transport: "test", advice: "is the program at the other end still running?")

    // MARK: Ended by the other end

    @Test("The end of the other side's bytes is reported, and writing still works after it")
    func halfClosedThere() {
        let ground = Ground()
        ground.far.write([1, 2])
        ground.far.finishWriting()
        #expect(ground.end.wait { ground.end.log.contains(.ended) })
        #expect(ground.end.log == [.bytes, .ended])
        let stream = Stream.bytes(0..<2_000_000)
        ground.end.write(stream)
        #expect(ground.far.read(stream.count) == stream)
        ground.far.close()
        #expect(ground.end.wait { ground.end.log.last == .closed(nil) })
        let log = ground.end.log.filter { $0 != .writable }
        #expect(log == [.bytes, .ended, .finished, .closed(nil)])
        #expect(ground.end.breaches == [])
        #expect(!ground.end.socket.isOpen)
    }

    @Test("A full close ends the pipe without an error, after the bytes that were sent before it")
    func closedThere() {
        let ground = Ground()
        ground.far.write(Stream.bytes(0..<100_000))
        ground.far.close()
        #expect(ground.end.wait { ground.end.log.last == .closed(nil) })
        #expect(ground.end.log == [.bytes, .finished, .closed(nil)])
        #expect(ground.end.byteCount == 100_000)
        #expect(ground.end.breaches == [])
        #expect(!ground.end.socket.isOpen)
    }

    @Test("An end that closes with unread bytes resets the pipe; its own bytes are delivered before")
    func resetThere() {
        let ground = Ground()
        ground.end.write([1, 2, 3])
        ground.far.write([4])
        ground.far.close()
        #expect(ground.end.wait { ground.end.log.last == .closed(Self.reset) })
        #expect(ground.end.log == [.bytes, .finished, .closed(Self.reset)])
        #expect(ground.end.breaches == [])
    }

    @Test("A reset after the end of the bytes is also reported, although nothing is read any more")
    func resetAfterLastWord() {
        let ground = Ground()
        ground.far.finishWriting()
        #expect(ground.end.wait { ground.end.log == [.ended] })
        ground.end.write([1])
        ground.far.close()
        #expect(ground.end.wait { ground.end.log.last == .closed(Self.reset) })
    }

    @Test("A backed-up writer is notified that the other end is gone, even if it has paused")
    func goneWhileHeldUp() {
        for isPaused in [false, true] {
            let ground = Ground()
            if isPaused { ground.end.call { $0.pauseReading() } }
            ground.end.write(Stream.bytes(0..<3_000_000))
            ground.far.close()
            #expect(ground.end.wait { ground.end.log.last == .closed(Self.reset) })
            #expect(ground.end.breaches == [])
        }
    }

    /// The pipe notices it during the write, inside the call of its user.
    @Test("A write to an end that is gone is reported in the next turn, after the bytes of that end")
    func foundOutByWriting() {
        let ground = Ground()
        let end = ground.end
        end.call { $0.pauseReading() }
        ground.far.write([7])
        ground.far.close()
        end.call { pipe in
            pipe.resumeReading()
            PipeEnd.write([1], to: pipe)
            PipeEnd.write([2], to: pipe)
        }
        #expect(end.wait { end.log.last == .closed(Self.reset) })
        #expect(end.log == [.bytes, .finished, .closed(Self.reset)])
        #expect(end.breaches == [])
    }

    @Test("A pipe that breaks and is closed in the same turn reports no error")
    func closedAfterBreaking() {
        for mode in [PipeCloseMode.now, .afterWriting] {
            let ground = Ground()
            let end = ground.end
            end.call { $0.pauseReading() }
            ground.far.close()
            end.call { pipe in
                PipeEnd.write([1], to: pipe)
                pipe.close(mode)
            }
            ground.waitForEvents()
            #expect(end.log == (mode == .now ? [.finished] : [.finished, .drained]))
            #expect(!end.socket.isOpen)
            #expect(end.breaches == [])
        }
    }

    // MARK: Ended by this end

    @Test("After close(.afterWriting) a pipe sends everything and its end, and waits for the other end")
    func lingers() {
        let ground = Ground()
        let stream = Stream.bytes(0..<3_000_000)
        ground.end.write(stream)
        ground.end.close(.afterWriting)
        // What arrives meanwhile must neither block the other end nor reset it.
        ground.far.write([1, 2, 3])
        #expect(ground.far.read(stream.count, pieceLimit: 10_000) == stream)
        #expect(ground.far.isAtEnd)
        ground.far.write([4, 5])
        ground.waitForEvents()
        #expect(ground.end.log == [.drained])
        ground.far.close()
        #expect(ground.end.wait { ground.end.isFinished })
        #expect(ground.end.log == [.drained, .finished])
        #expect(ground.end.breaches == [])
        #expect(!ground.end.socket.isOpen)
    }

    @Test("A pipe whose other end has finished writing is over as soon as all bytes are sent")
    func lingersNoLonger() {
        let ground = Ground()
        ground.far.finishWriting()
        #expect(ground.end.wait { ground.end.log == [.ended] })
        let stream = Stream.bytes(0..<1_000_000)
        ground.end.write(stream)
        ground.end.close(.afterWriting)
        #expect(ground.far.read(stream.count) == stream)
        #expect(ground.far.isAtEnd)
        #expect(ground.end.wait { ground.end.isFinished })
        #expect(ground.end.log == [.ended, .drained, .finished])
        #expect(ground.end.breaches == [])
    }

    @Test("After close(.afterWriting) a pipe gives up if the reader never reads, or never ends")
    func givesUp() {
        for size in [10, 3_000_000] {
            // Longer than the thread of the loop may have to wait for a processor.
            let ground = Ground(lingerTime: .milliseconds(500))
            let lingering = Monitor()
            let count = Flag()
            ground.end.call { $0.beganToLinger = { _ in lingering.change { count.isSet = true } } }
            ground.end.call { $0.pauseReading() }
            ground.end.write(Stream.bytes(0..<size))
            ground.far.write([1])
            ground.end.close(.afterWriting)
            #expect(ground.end.wait { ground.end.log.count == 2 })
            #expect(ground.end.log == (size == 10 ? [.drained, .finished] : [.finished, .drained]))
            #expect(ground.end.breaches == [])
            // Only the pipe that has sent everything reported that it lingers.
            #expect(lingering.read { count.isSet } == (size == 10))
            #expect(!ground.end.socket.isOpen)
            let got = ground.far.read(size + 1)
            #expect(size == 10 ? got.count == 10 : got.count < size)
            #expect(got == Stream.bytes(0..<got.count))
            // The far end wrote something that nobody has read; it must not be reset for that.
            #expect(ground.far.isAtEnd)
        }
    }

    private final class Flag: @unchecked Sendable {
        var isSet = false
    }

    @Test(
        "A lingering pipe is over if its other end closes or its transport aborts it",
        arguments: [false, true])
    func goneWhileLingering(isBrokenOff: Bool) {
        let ground = Ground()
        ground.end.write(Stream.bytes(0..<3_000_000))
        ground.end.close(.afterWriting)
        if isBrokenOff { ground.end.call { $0.fail(with: Self.reset) } } else { ground.far.close() }
        #expect(ground.end.wait { ground.end.log.count == 2 })
        #expect(ground.end.log == [.finished, .drained])
        #expect(ground.end.breaches == [])
    }

    @Test("After close(.now) a pipe drops waiting bytes, is over within the call, and reports nothing more")
    func closesNow() {
        let ground = Ground()
        ground.end.write(Stream.bytes(0..<3_000_000))
        ground.far.write([1])
        ground.end.close(.now)
        #expect(ground.end.log.last == .finished)
        #expect(!ground.end.socket.isOpen)
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
        #expect(ground.end.log == before)
        #expect(ground.end.breaches == [])
        #expect(ground.end.call { $0.counters.bytesWaiting } == 0)
    }

    @Test("A handler that closes when it receives bytes is not called again for other bytes")
    func closingInAHandlerStopsCallbacks() {
        let ground = Ground { $0.close(.afterWriting) }
        ground.far.write(Stream.bytes(0..<1_000))
        #expect(ground.far.isAtEnd)
        ground.far.write(Stream.bytes(0..<100_000))
        ground.far.close()
        #expect(ground.end.wait { ground.end.isFinished })
        #expect(ground.end.log == [.bytes, .drained, .finished])
    }

    @Test("A pipe that its transport finishes is over at once, and only its owner is notified")
    func finishes() {
        for isLingering in [false, true] {
            let ground = Ground()
            ground.end.write(Stream.bytes(0..<3_000_000))
            if isLingering { ground.end.close(.afterWriting) }
            ground.end.finish()
            #expect(ground.end.log == [.finished])
            #expect(!ground.end.socket.isOpen)
            ground.waitForEvents()
            #expect(ground.end.log == [.finished])
            #expect(ground.end.breaches == [])
        }
    }

    @Test("A lingering pipe that is over with unread bytes does not reset the other end")
    func finishesUnread() {
        let ground = Ground()
        ground.end.write([1, 2])
        ground.end.close(.afterWriting)
        let far = ground.far
        // In one turn, so that the pipe cannot read it before.
        ground.end.call { pipe in
            far.write([3])
            pipe.finish()
        }
        #expect(far.read(2) == [1, 2])
        #expect(far.isAtEnd)
    }

    @Test("A pipe that its transport aborts reports that error in a later turn, and nothing else")
    func breaksOff() {
        let reason = NighError(
            .conversing, .unavailable("the cable was pulled out"), transport: "test", advice: "put it back")
        let ground = Ground()
        ground.far.write([1])
        ground.waitForEvents()
        ground.end.call { pipe in
            pipe.fail(with: reason)
            pipe.fail(with: Self.reset)
            PipeEnd.write([1], to: pipe)
        }
        #expect(ground.end.wait { ground.end.log.last == .closed(reason) })
        #expect(ground.end.log == [.bytes, .finished, .closed(reason)])
        #expect(ground.end.breaches == [])
        #expect(!ground.end.socket.isOpen)
    }

    @Test("A pipe that is aborted and finished in one turn reports nothing")
    func breaksOffAndFinishes() {
        let ground = Ground()
        ground.end.call { pipe in
            pipe.fail(with: Self.reset)
            pipe.finish()
        }
        ground.waitForEvents()
        #expect(ground.end.log == [.finished])
    }

    // MARK: Lifetime

    @Test("A pipe that nobody retains continues to its end, and is then released")
    func holdsItself() {
        let ground = Ground()
        let stream = Stream.bytes(0..<2_000_000)
        ground.end.write(stream)
        ground.end.close(.afterWriting)
        ground.end.release()
        #expect(ground.end.pipeIsAlive)
        #expect(ground.far.read(stream.count) == stream)
        ground.far.close()
        #expect(ground.end.wait { ground.end.isFinished })
        #expect(!ground.end.pipeIsAlive)
    }

    @Test("A loop that ends closes the sockets of its pipes without any report")
    func endsWithItsLoop() {
        for isLingering in [false, true] {
            let sockets = SocketPair()
            let loop = UVEventLoop()
            let end = PipeEnd(sockets.near, on: loop)
            end.write(Stream.bytes(0..<3_000_000))
            if isLingering { end.close(.afterWriting) }
            end.release()
            loop.shutdown()
            #expect(!end.socket.isOpen)
            #expect(end.log == [])
            #expect(sockets.far.read(3_000_000).count < 3_000_000)
        }
    }
}
