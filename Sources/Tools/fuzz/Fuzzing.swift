import Glibc
import Measuring
import NighCore

/// Runs inputs, and reports progress and findings.
struct Fuzzing {
    let options: Options
    private let corpus: [Scenario]
    private let frames: [[UInt8]]

    init(_ options: Options) throws {
        self.options = options
        corpus = try Corpus.record()
        frames = Mutator.frames(of: corpus)
    }

    /// The number of findings at which the run stops.
    private static let findingLimit = 20

    /// Runs everything that was asked for. Returns the findings, each with the options that repeat it. Calls `willRun`
    /// with each input before the input is run.
    func run(report: (String) -> Void, willRun: (Target, UInt64) -> Void = { _, _ in }) -> [String] {
        var findings: [String] = []
        for target in options.targets {
            let count = options.one == nil ? max(1, options.inputs / options.targets.count) : 1
            let first = options.one ?? options.seed
            let watch = Stopwatch()
            var lastReport = 0.0
            for offset in 0..<count {
                let seed = first &+ UInt64(offset)
                willRun(target, seed)
                do {
                    try target.run(seed: seed, corpus: corpus, frames: frames)
                } catch {
                    let message = (error as? Finding)?.message ?? "\(error)"
                    findings.append("--target \(target.rawValue) --one \(seed): \(message)")
                    report("finding: \(findings[findings.count - 1])")
                    if findings.count >= Self.findingLimit { return findings }
                }
                guard offset & 0xFF == 0xFF, watch.seconds - lastReport >= 5 else { continue }
                lastReport = watch.seconds
                let rate = Int(Double(offset + 1) / lastReport)
                report(
                    "\(target.rawValue): \(offset + 1) of \(count), \(rate) a second, \(Self.residentMegabytes()) MB"
                )
            }
            let seconds = max(watch.seconds, 0.001)
            report(
                "\(target.rawValue): \(count) inputs in \(Int(seconds)) s, \(Int(Double(count) / seconds)) a second, "
                    + "\(Self.residentMegabytes()) MB")
        }
        return findings
    }

    /// Returns the resident memory of this process, in MB. A number that only grows is a leak.
    private static func residentMegabytes() -> Int {
        guard let file = fopen("/proc/self/statm", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 128)
        guard fgets(&line, 128, file) != nil else { return 0 }
        let fields = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            .split(
                separator: " ")
        let pages = fields.count > 1 ? Int(fields[1]) ?? 0 : 0
        return pages * 4_096 / (1 << 20)
    }
}

/// Remembers the current input, so that a trap can still report it.
enum TrapReporter {
    // `nonisolated(unsafe)`: written by the tool's one thread, and read by the handler of a signal that has stopped it.
    nonisolated(unsafe) private static var line: UnsafeMutablePointer<CChar> = .allocate(capacity: 128)
    nonisolated(unsafe) private static var seed: UInt64 = 0
    nonisolated(unsafe) private static var target = Target.decoder

    static func willRun(_ target: Target, _ seed: UInt64) {
        self.target = target
        self.seed = seed
    }

    /// Makes fatal signals report the input before they end the program.
    static func install() {
        for fatal in [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE] {
            signal(fatal) { number in
                TrapReporter.write("fuzz: trapped at --target ")
                TrapReporter.write(TrapReporter.target.rawValue)
                TrapReporter.write(" --one ")
                TrapReporter.writeSeed()
                TrapReporter.write("\n")
                signal(number, SIG_DFL)
                raise(number)
            }
        }
    }

    private static func write(_ text: String) {
        var text = text
        text.withUTF8 { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    /// Writes the digits without an allocation, because the trap may have been in the allocator.
    private static func writeSeed() {
        var position = 127
        var rest = seed
        repeat {
            line[position] = CChar(48 + rest % 10)
            rest /= 10
            position -= 1
        } while rest > 0
        _ = Glibc.write(STDERR_FILENO, line + position + 1, 127 - position)
    }
}
