import Glibc
import NighCore

/// The lines that somebody types, read on a thread of its own. It ends with the program: nothing can take a blocked read back.
final class TypedLines: Sendable {
    private let thread = LoopThread()

    /// Longer lines are no commands, and left out.
    private static let lineLimit = 4_096

    /// Hands each line to `take`, on that thread, until the input ends.
    func start(_ take: @escaping @Sendable (String) -> Void) throws(NighError) {
        try thread.start {
            var line: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 1_024)
            while true {
                let count = read(STDIN_FILENO, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return }
                for byte in buffer[..<count] {
                    guard byte == UInt8(ascii: "\n") else {
                        if line.count <= Self.lineLimit { line.append(byte) }
                        continue
                    }
                    if line.count <= Self.lineLimit { take(String(decoding: line, as: UTF8.self)) }
                    line = []
                }
            }
        }
    }
}
