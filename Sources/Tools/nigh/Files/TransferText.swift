import JSONText
import NighCore
import NighFiles
import Terminal

/// Formats how far a transfer is.
enum TransferText {
    /// The lines that a person sees: the progress of all files, and those on their way.
    static func lines(_ label: String, _ progress: FileProgress, remark: String?) -> [Line] {
        let line = line(label, progress, remark: remark ?? progress.state.pause.map { "paused: \($0)" })
        guard progress.itemCount > 1, let current = progress.current else { return [line] }
        let size = current.size.map { " (\(ByteCount($0)))" } ?? ""
        let count = min(progress.itemsDone + progress.itemsFailed + 1, progress.itemCount)
        return [
            line, Line("  \(count) of \(progress.itemCount): \(quoted(current.path))\(size)", .faint),
        ]
    }

    /// The label, how far the transfer is, and the rate or a remark.
    static func line(_ label: String, _ progress: FileProgress?, remark: String?) -> Line {
        var line = Line(label, .strong) + "  "
        if let progress, let total = progress.total {
            let share = progress.fraction ?? 0
            line = line + Line(bar(share)) + Line(" \(Int(share * 100)) %  ")
            line = line + Line("\(ByteCount(progress.done)) of \(ByteCount(total))")
        } else if let progress {
            line = line + Line("\(ByteCount(progress.done))")
        }
        if let remark { return line + Line("  \(remark)", .warning) }
        guard let progress, let rate = progress.bytesPerSecond else { return line }
        line = line + Line("  \(ByteCount(Int(rate)))/s")
        guard let left = progress.timeLeft else { return line }
        return line + Line("  \(time(left.seconds)) left", .faint)
    }

    /// How far the transfer is, as members of a JSON object.
    static func members(_ progress: FileProgress) -> [JSON.Member] {
        [
            .init("stored_bytes", .integer(progress.done)), .init("size_bytes", JSON(progress.total)),
            .init("resumed_bytes", .integer(progress.resumed)),
            .init("items_done", .integer(progress.itemsDone)), .init("items", .integer(progress.itemCount)),
            .init("current", JSON(progress.current?.path)),
            .init("bytes_per_second", JSON(progress.bytesPerSecond)),
            .init("paused", JSON(progress.state.pause)),
        ]
    }

    /// The number of files and folders in words, for example "3 files and 1 folder".
    static func count(_ items: [FileItem]) -> String {
        let folders = items.count { $0.kind == .folder }
        let files = items.count - folders
        let words = [(files, "file"), (folders, "folder")].filter { $0.0 > 0 }.map { count, noun in
            count == 1 ? "1 \(noun)" : "\(count) \(noun)s"
        }
        return words.joined(separator: " and ")
    }

    /// Returns a few words for an offer: the name of a single file, else how many files and folders.
    static func label(_ items: [FileItem], name: String? = nil) -> String {
        guard items.count == 1, let only = items.first else { return count(items) }
        return name ?? (only.kind == .folder ? "\(only.path)/" : only.path)
    }

    /// The names of the items offered by themselves, with "/" behind those of folders. A folder need not be an item.
    static func names(_ items: [FileItem]) -> [String] {
        var seen: Set<String> = []
        return items.compactMap { item in
            let components = item.path.pathComponents
            let name = components.first ?? item.path
            guard seen.insert(name).inserted else { return nil }
            return item.kind == .folder || components.count > 1 ? "\(name)/" : name
        }
    }

    /// The question whether to accept the offer of `sender`. Text that the sender has chosen stands behind words that
    /// it cannot choose, and its name before those of its files.
    static func question(_ items: [FileItem], size: Int?, from sender: String) -> String {
        let size = size.map { ByteCount($0).description } ?? "of unknown size"
        let names = (items.count == 1 ? [label(items)] : names(items)).map { quoted($0) }
        let shown = (names.prefix(mostNames) + (names.count > mostNames ? ["…"] : [])).joined(separator: ", ")
        let what = items.count == 1 ? "\(shown) (\(size))" : "\(count(items)) (\(size) in all): \(shown)"
        return "Accept from \(sender): \(what)? [y/n] "
    }

    /// The most names in a question.
    private static let mostNames = 3

    /// A peer's name or path in quotes that it cannot contain, without invisible characters, and short enough to see
    /// its end.
    static func quoted(_ name: String) -> String {
        let plain = name.unicodeScalars.map { $0.isInvisible || $0 == "\"" ? "_" : String($0) }.joined()
        return "\"\(CellText(plain).fitting(longestName).string)\""
    }

    /// The columns that a name takes at most.
    private static let longestName = 40
    private static let barLength = 20

    private static func bar(_ share: Double) -> String {
        let filled = Int(share * Double(barLength))
        return String(repeating: "█", count: filled) + String(repeating: "░", count: barLength - filled)
    }

    private static func time(_ seconds: Double) -> String {
        let seconds = Int(min(seconds.rounded(.up), 360_000))
        switch seconds {
        case ..<60: return "\(seconds) s"
        case ..<3_600: return "\(seconds / 60) min \(seconds % 60) s"
        default: return "\(seconds / 3_600) h \(seconds / 60 % 60) min"
        }
    }
}

extension FileProgress {
    /// Whether anything of it was accepted.
    var isBegun: Bool { itemsDone > 0 || itemsFailed > 0 || transferred > 0 }
}

extension FileProgress.State {
    /// Why nothing moves; nil unless a side has paused.
    var pause: String? { if case .paused(_, let reason) = self { reason } else { nil } }
}

/// A number of bytes, formatted for a person.
struct ByteCount: CustomStringConvertible {
    let count: Int

    init(_ count: Int) { self.count = count }

    var description: String {
        let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
        guard count >= 1_024 else { return count == 1 ? "1 byte" : "\(count) bytes" }
        var value = Double(count) / 1_024
        var unit = 0
        while value >= 1_023.95, unit < units.count - 1 {
            value /= 1_024
            unit += 1
        }
        let tenths = Int((value * 10).rounded())
        return value < 99.95
            ? "\(tenths / 10).\(tenths % 10) \(units[unit])" : "\(Int(value.rounded())) \(units[unit])"
    }
}

/// Returns bytes per second; nil if there are none, or if the time is too short for a meaningful rate.
func rate(of count: Int, in time: Duration) -> Double? {
    count > 0 && time >= .milliseconds(1) ? Double(count) / time.seconds : nil
}

/// Formats a duration for a person, without milliseconds from one second on.
func durationText(_ span: Duration) -> String {
    guard span >= .seconds(1) else { return "\(Moment.Span(span))" }
    let tenths = Int((span.seconds * 10).rounded())
    guard tenths >= 600 else { return "\(tenths / 10).\(tenths % 10) s" }
    return "\(tenths / 600) min \(tenths / 10 % 60) s"
}
