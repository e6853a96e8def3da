import Glibc
import NighCore
import NighTestKit
import NighUV
import Testing

/// Tests what a pipe over a connected stream socket transfers, and what stops it. The conformance suite checks what it
/// has in common with all pipes.
struct SocketPipeTests {
    @Test func `Many small slices of several chunks leave in order`() {
        let ground = PipeGround()
        let stream = Stream.bytes(0..<20_000)
        ground.end.call { pipe in
            var queue = ByteQueue()
            // Slices of separate chunks are not merged.
            for start in stride(from: 0, to: stream.count, by: 20) {
                queue.append(ByteSlice(stream[start..<start + 20]))
            }
            pipe.write(&queue)
        }
        #expect(ground.far.read(stream.count) == stream)
    }

    @Test func `A reader that pauses backs up the writer, which is notified once when it may continue`() {
        let ground = PipeGround()
        let written = ground.end.call { pipe in
            var position = 0
            while pipe.writableBytes > 0 {
                PipeEnd.write(Stream.bytes(position..<position + 50_000), to: pipe)
                position += 50_000
            }
            return position
        }
        // The kernel's buffers and the high-water mark.
        #expect(written < 4 * SocketPipe.highWaterMark)
        #expect(ground.end.call { $0.counters.bytesWaiting } >= SocketPipe.highWaterMark)
        #expect(ground.end.log == [])
        #expect(ground.far.read(written) == Stream.bytes(0..<written))
        ground.expect(.writable)
        #expect(ground.end.call { $0.counters.bytesWaiting } == 0)
    }

    /// Without this, the bytes in between would be delivered although the handler has paused.
    @Test func `A handler that pauses is not called again in that turn`() {
        let ground = PipeGround { $0.pauseReading() }
        let end = ground.end
        let total = 1_000_000
        let writer = PipeEnd(ground.far.take(), on: ground.loop)
        writer.write(Stream.bytes(0..<total))
        #expect(end.wait { end.byteCount > 0 })
        ground.waitForEvents()
        #expect(end.byteCount < total)
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
    @Test func `One wake-up reads a limited number of bytes, so that other work on the loop has its turn`() {
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

    @Test func `A descriptor that is not a stream socket is refused, and its caller keeps it`() throws {
        let ground = PipeGround()
        var datagrams: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0, &datagrams) == 0)
        let file = open("/proc/self/exe", O_RDONLY)
        defer { for descriptor in datagrams + [file] { close(descriptor) } }
        for (descriptor, number) in [
            (datagrams[0], EPROTOTYPE), (file, ENOTSOCK), (-1, EBADF),
            (ground.end.socket.descriptor, EEXIST),
        ] {
            let socket = SocketIdentity(descriptor)
            let error = ground.end.run { [loop = ground.loop] () -> NighError? in
                do throws(NighError) {
                    _ = try SocketPipe(descriptor: descriptor, scheme: "test", on: loop)
                    return nil
                } catch { return error }
            }
            #expect(error?.stage == .connecting && error?.transport == "test")
            guard case .system(number, _) = error?.cause else {
                Issue.record("\(String(describing: error)) instead of \(number)")
                continue
            }
            #expect(socket.isOpen == (descriptor >= 0))
        }
        ground.far.write([1])
        #expect(ground.end.wait { ground.end.byteCount == 1 })
    }

    @Test func `The descriptor is close-on-exec, and closing it never blocks`() {
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
