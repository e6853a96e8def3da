import Glibc
import NighCore
import NighTestKit
import NighUV
import Testing

/// Tests what a pipe over a connected stream socket transfers, and what stops it.
@Suite struct SocketPipeTests {
    private static let sizes = [1, 2, 7, 1_000, 4_096, 65_537, 1, 262_144, 300_001, 1_500_000, 3]

    /// Two loops, each with a pipe over one end of a pair. Both write at the same time.
    @Test("Bytes arrive whole and in order, both ways at once, however they are split")
    func bothWays() {
        let (near, far) = (UVEventLoop(), UVEventLoop())
        defer {
            near.shutdown()
            far.shutdown()
        }
        let sockets = SocketPair()
        let ends = [PipeEnd(sockets.near, on: near), PipeEnd(sockets.far.take(), on: far)]
        let total = Self.sizes.reduce(0, +)
        let stream = Stream.bytes(0..<total)
        var position = 0
        for size in Self.sizes {
            let bytes = Array(stream[position..<position + size])
            for end in ends { end.write(bytes) }
            position += size
        }
        for end in ends {
            #expect(end.wait { end.byteCount >= total })
            #expect(end.bytes == stream)
            #expect(end.breaches == [])
            let counters = end.call { $0.counters }
            #expect(counters.bytesReceived == total)
            #expect(counters.bytesWritten == total)
            #expect(counters.bytesWaiting == 0)
        }
    }

    @Test("Many small slices of several chunks leave in order")
    func manySlices() {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let sockets = SocketPair()
        let end = PipeEnd(sockets.near, on: loop)
        let stream = Stream.bytes(0..<20_000)
        end.call { pipe in
            var queue = ByteQueue()
            // Slices of separate chunks are not merged.
            for start in stride(from: 0, to: stream.count, by: 20) {
                queue.append(ByteSlice(stream[start..<start + 20]))
            }
            pipe.write(&queue)
        }
        #expect(sockets.far.read(stream.count) == stream)
    }

    @Test("A reader that pauses backs up the writer, which is notified once when it may continue")
    func backPressure() {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let sockets = SocketPair()
        let end = PipeEnd(sockets.near, on: loop)
        let written = end.call { pipe in
            var position = 0
            while pipe.writableBytes > 0 {
                PipeEnd.write(Stream.bytes(position..<position + 50_000), to: pipe)
                position += 50_000
            }
            return position
        }
        // The kernel's buffers and the high-water mark.
        #expect(written < 4 * SocketPipe.highWaterMark)
        #expect(end.call { $0.counters.bytesWaiting } >= SocketPipe.highWaterMark)
        #expect(!end.log.contains(.writable))
        #expect(sockets.far.read(written) == Stream.bytes(0..<written))
        #expect(end.wait { end.log.contains(.writable) })
        #expect(end.call { $0.counters.bytesWaiting } == 0)
        #expect(end.log == [.writable])
        #expect(end.breaches == [])
    }

    @Test("A paused pipe delivers no bytes, and all of them after it resumes; the other direction continues")
    func pausing() {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let sockets = SocketPair()
        let other = SocketPair()
        let end = PipeEnd(sockets.near, on: loop)
        let marker = PipeEnd(other.near, on: loop)
        end.call {
            $0.pauseReading()
            $0.pauseReading()
        }
        sockets.far.write([1, 2, 3])
        end.write([4])
        #expect(sockets.far.read(1) == [4])
        // When the marker has its byte, the loop has handled its descriptors since.
        other.far.write([0])
        #expect(marker.wait { marker.byteCount == 1 })
        #expect(end.log == [])
        end.call { $0.resumeReading() }
        #expect(end.wait { end.byteCount == 3 })
        #expect(end.breaches == [])
    }

    /// Without this, the bytes in between would be delivered although the handler has paused.
    @Test("A handler that pauses is not called again in that turn")
    func pausingInAHandlerStopsCallbacks() {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let sockets = SocketPair()
        let other = SocketPair()
        let total = 1_000_000
        let end = PipeEnd(sockets.near, on: loop) { $0.pauseReading() }
        let marker = PipeEnd(other.near, on: loop)
        let writer = PipeEnd(sockets.far.take(), on: loop)
        writer.write(Stream.bytes(0..<total))
        #expect(end.wait { end.byteCount > 0 })
        other.far.write([0])
        #expect(marker.wait { marker.byteCount == 1 })
        let first = end.byteCount
        #expect(first < total)
        var rounds = 0
        while end.byteCount < total, rounds < total {
            let before = end.byteCount
            end.call { $0.resumeReading() }
            guard end.wait(until: { end.byteCount > before }) else { break }
            rounds += 1
        }
        #expect(end.bytes == Stream.bytes(0..<total))
        #expect(rounds > 0)
    }

    /// The handler makes sure that there is always more to read than one read takes.
    @Test("One wake-up reads a limited number of bytes, so that other work on the loop has its turn")
    func shares() {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let sockets = SocketPair()
        let other = SocketPair()
        var size: Int32 = 1 << 20
        setsockopt(sockets.far.descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        _ = fcntl(sockets.far.descriptor, F_SETFL, O_NONBLOCK)
        let plenty = [UInt8](repeating: 0, count: 1 << 20)
        let marker = PipeEnd(other.near, on: loop)
        let end = PipeEnd(sockets.near, on: loop) { pipe in
            // Not earlier, because otherwise the marker might get its byte first.
            if pipe.counters.bytesReceived < plenty.count { other.far.write([0]) }
            if pipe.counters.bytesReceived < 30_000_000 { sockets.far.write(plenty) }
            if marker.byteCount > 0 { pipe.pauseReading() }
        }
        sockets.far.write(plenty)
        #expect(marker.wait { marker.byteCount > 0 })
        #expect(end.byteCount < 10_000_000)
        end.finish()
    }

    @Test("A descriptor that is not a stream socket is refused, and its caller keeps it")
    func refused() throws {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let sockets = SocketPair()
        let end = PipeEnd(sockets.near, on: loop)
        var datagrams: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0, &datagrams) == 0)
        let file = open("/proc/self/exe", O_RDONLY)
        defer { for descriptor in datagrams + [file] { close(descriptor) } }
        for (descriptor, number) in [
            (datagrams[0], EPROTOTYPE), (file, ENOTSOCK), (-1, EBADF), (sockets.near, EEXIST),
        ] {
            let socket = SocketIdentity(descriptor)
            let error = end.run { () -> NighError? in
                do throws(NighError) {
                    _ = try SocketPipe(descriptor: descriptor, scheme: "test", on: loop)
                    return nil
                } catch { return error }
            }
            #expect(error?.stage == .connecting)
            #expect(error?.transport == "test")
            guard case .system(number, _) = error?.cause else {
                Issue.record("\(String(describing: error)) instead of \(number)")
                continue
            }
            #expect(socket.isOpen == (descriptor >= 0))
        }
        sockets.far.write([1])
        #expect(end.wait { end.byteCount == 1 })
    }

    @Test("The descriptor is close-on-exec, and closing it never blocks")
    func descriptorFlags() {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let sockets = SocketPair()
        _ = fcntl(sockets.near, F_SETFD, 0)
        var long = linger(l_onoff: 1, l_linger: 100)
        setsockopt(sockets.near, SOL_SOCKET, SO_LINGER, &long, socklen_t(MemoryLayout<linger>.size))
        let end = PipeEnd(sockets.near, on: loop)
        var size = socklen_t(MemoryLayout<linger>.size)
        getsockopt(sockets.near, SOL_SOCKET, SO_LINGER, &long, &size)
        #expect(long.l_onoff == 0)
        #expect(fcntl(sockets.near, F_GETFD) == FD_CLOEXEC)
        #expect(fcntl(sockets.near, F_GETFL) & O_NONBLOCK != 0)
        end.finish()
    }
}
