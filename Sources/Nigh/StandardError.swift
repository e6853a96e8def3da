import Dispatch
import Glibc

/// Writes lines to the standard error, on a queue of its own: a reader that does not read must not block a session.
enum StandardError {
    private static let queue = DispatchQueue(label: "nigh.standard-error")

    static func print(_ line: String) {
        queue.async {
            let bytes = Array((line + "\n").utf8)
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress!, $0.count) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }
    }
}
