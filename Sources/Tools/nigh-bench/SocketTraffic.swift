import Glibc
import NighCore
import NighUV

/// Sends bytes one way over a pair of connected sockets, as fast as they go, from one loop to another, without a
/// session.
///
/// The writer writes until its pipe is backed up, and again when it is notified that it may. So the measurement
/// includes the cost of waiting and going on.
struct SocketTraffic {
    let size: Int

    private static let bytesInWrite = 64 << 10
    private static let messagesInStep = 64

    func measure(warmUp: Int, until: Meter.Until) async throws -> Measurement {
        let meter = Meter(step: Self.messagesInStep, warmUp: warmUp, until: until)
        var descriptors: [Int32] = [0, 0]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &descriptors) == 0 else {
            throw NighError(.starting, SocketFault(errno).cause)
        }
        let ends: [End] = [
            Writer(size: size, count: max(1, Self.bytesInWrite / size)), Reader(size: size, meter: meter),
        ]
        let loops = ends.map { _ in UVEventLoop() }
        for (index, end) in ends.enumerated() {
            let (loop, descriptor) = (loops[index], descriptors[index])
            loop.execute {
                do throws(NighError) {
                    end.begin(try SocketPipe(descriptor: descriptor, scheme: "socket", on: loop))
                } catch {
                    meter.fail(error)
                }
            }
        }
        let measurement = try await meter.measurement
        for loop in loops { loop.shutdown() }
        return measurement
    }

    /// One end of the connection. `@unchecked Sendable`: touched on its loop only.
    private class End: PipeHandler, @unchecked Sendable {
        func begin(_ pipe: SocketPipe) { pipe.start(handler: self) }

        func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {}

        func pipeBecameWritable(_ pipe: any Pipe) {}

        func pipeEnded(_ pipe: any Pipe) {}

        func pipeClosed(_ pipe: any Pipe, error: NighError?) {}

        func pipeDrained(_ pipe: any Pipe) {}
    }

    private final class Writer: End, @unchecked Sendable {
        private let slice: ByteSlice
        private let count: Int
        private var queue = ByteQueue()

        init(size: Int, count: Int) {
            slice = ByteSlice([UInt8](repeating: 0x6e, count: size))
            self.count = count
        }

        override func begin(_ pipe: SocketPipe) {
            super.begin(pipe)
            fill(pipe)
        }

        override func pipeBecameWritable(_ pipe: any Pipe) { fill(pipe) }

        private func fill(_ pipe: any Pipe) {
            while pipe.writableBytes > 0 {
                for _ in 0..<count { queue.append(slice) }
                pipe.write(&queue)
            }
        }
    }

    private final class Reader: End, @unchecked Sendable {
        private let size: Int
        private let meter: Meter
        private var rest = 0

        init(size: Int, meter: Meter) {
            self.size = size
            self.meter = meter
        }

        override func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
            rest &+= bytes.count
            while rest >= size {
                rest &-= size
                meter.count()
            }
        }
    }
}
