import CBenchmark
import Glibc
import Measuring

/// The machine and the month of the measurement.
enum Machine {
    static var description: String {
        let model = field("model name", in: "/proc/cpuinfo", separator: ":") ?? "unknown processor"
        let system = field("PRETTY_NAME", in: "/etc/os-release", separator: "=") ?? "Linux"
        return "\(benchmark_processors()) × \(model), \(system.filter { $0 != "\"" })"
    }

    static var month: String { WallClock.text("%B %Y") }

    private static func field(_ name: String, in path: String, separator: Character) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 4_096)
        while fgets(&line, Int32(line.count), file) != nil {
            let bytes = line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:))
            let parts = String(decoding: bytes, as: UTF8.self).split(separator: separator, maxSplits: 1)
            guard parts.count == 2, singleSpaced(parts[0]) == name else { continue }
            return singleSpaced(parts[1])
        }
        return nil
    }

    private static func singleSpaced(_ text: Substring) -> String {
        text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
}
