import CBenchmark
import Glibc

/// A running program whose results are read as they come, a line with a name and a number each. When released, it is
/// ended and reaped.
final class Child {
    /// The results that it has reported so far, by name.
    private(set) var results: [String: String] = [:]
    private(set) var hasEnded = false

    private var process: benchmark_process
    private var unread: [UInt8] = []

    init(_ arguments: [String], processor: Int?) throws(RunError) {
        var pointers: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
        defer { for pointer in pointers { free(pointer) } }
        pointers.append(nil)
        process = benchmark_start(&pointers, Int32(processor ?? -1))
        guard process.identifier > 0 else { throw .failed("\(arguments[0]) cannot be started") }
    }

    deinit { end() }

    /// Reads the children's output until each has reported the expected result. A child that ends before that has
    /// failed.
    static func waitForResults(_ expected: [(child: Child, name: String)], until deadline: UInt64)
        throws(RunError)
    {
        while true {
            let missing = expected.filter { $0.child.results[$0.name] == nil }.map(\.child)
            if missing.isEmpty { return }
            for child in missing where child.hasEnded {
                switch child.end() {
                case 3: throw .unsupported
                case let status: throw .failed("it ended early, with status \(status)")
                }
            }
            let now = benchmark_now()
            if benchmark_was_interrupted() { throw .interrupted }
            guard now < deadline else { throw .failed("it took too long") }
            var polled = missing.map { pollfd(fd: $0.process.output, events: Int16(POLLIN), revents: 0) }
            let timeout = Int32((deadline - now) / 1_000_000 + 1)
            guard poll(&polled, nfds_t(polled.count), timeout) > 0 else { continue }
            for (child, polled) in zip(missing, polled) where polled.revents != 0 { child.read() }
        }
    }

    private func read() {
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let count = Glibc.read(process.output, &bytes, bytes.count)
        guard count > 0 else {
            hasEnded = count == 0 || errno != EINTR
            return
        }
        unread += bytes.prefix(count)
        while let newline = unread.firstIndex(of: UInt8(ascii: "\n")) {
            let fields = String(decoding: unread[..<newline], as: UTF8.self).split(separator: " ")
            if fields.count == 2 { results[String(fields[0])] = String(fields[1]) }
            unread.removeSubrange(...newline)
        }
    }

    /// Returns a number that it has reported.
    func number(_ name: String) -> Double? { results[name].flatMap(Double.init) }

    /// Ends the program, gently if that works, and reaps it. Returns its exit status.
    @discardableResult
    func end() -> Int {
        guard process.identifier > 0 else { return -1 }
        close(process.input)
        close(process.output)
        // A program that has ended by itself has an exit status of its own.
        var status = benchmark_wait(process.identifier, hasEnded ? 1_000 : 0)
        // A script removes its files only after what it runs has ended.
        for (signal, timeout) in [(SIGTERM, Int32(10_000)), (SIGKILL, 10_000)] where status < 0 {
            kill(process.identifier, signal)
            status = benchmark_wait(process.identifier, timeout)
        }
        process.identifier = -1
        return Int(status)
    }
}

/// Why there is no result.
enum RunError: Error {
    /// Somebody pressed Ctrl-C, or asked this program to end.
    case interrupted
    /// The library cannot do this work.
    case unsupported
    case failed(String)
}
