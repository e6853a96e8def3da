import Measuring
import NighLoop
import NighCore

/// The page that `nigh bench --report` writes: one file, which loads nothing and has no script.
struct BenchReport: Sendable {
    private let findings: BenchFindings

    /// The minimum time in seconds over which a rate is computed: the first reports follow each other closely.
    private static let leastTime = 0.2
    private static let mostDots = 1_000
    private static let mostBars = 32
    private static let fewestBars = 12

    init(_ findings: BenchFindings) { self.findings = findings }

    /// The whole page.
    var page: String {
        let name = findings.peer?.name.description ?? "nobody"
        let markup: Markup = """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <title>nigh bench: \(name)</title>
            <style>\(Self.style)</style>
            </head>
            <body>
            <main>
            <h1>From \(findings.own) to \(name)</h1>
            <p class="lead">The throughput between two devices, and its effect on the round trip.\(interruption)</p>
            \(setUp)
            <h2>Summary</h2>
            \(summary)
            \(packets)
            \(findings.runs.map(section))
            <footer>Made by nigh bench. The results count what was received between a mark and an end that travel with the \
            messages. The warm-up, shaded in the plots, is not counted. Percentiles are accurate to within 1.6 %.</footer>
            </main>
            </body>
            </html>

            """
        return markup.description
    }

    private var interruption: Markup {
        findings.wasInterrupted ? " The measurement was interrupted: some runs are missing." : ""
    }

    private var setUp: Markup {
        var rows: [(String, String)] = [
            ("When", findings.startedAt),
            ("From", "\(findings.own) (\(findings.ownID.short)), \(Software.description)"),
        ]
        if let peer = findings.peer {
            rows.append(("To", "\(peer.name) (\(peer.identity.short)), \(findings.software)"))
            rows.append(("Transport", findings.runs.last?.transport ?? peer.transport ?? "unknown"))
        }
        rows.append(("Security", findings.security.rawValue))
        rows.append(("Protocol", "nigh bench, version \(BenchMessage.version)"))
        if let middle = findings.idle.percentileInWords(0.5) {
            rows.append(("Round trip without load", "\(middle) (median of \(findings.idle.histogram.count))"))
        }
        return "<dl>\(rows.map { "<dt>\($0.0)</dt><dd>\($0.1)</dd>" as Markup })</dl>"
    }

    private var summary: Markup {
        let rows = findings.runs.flatMap { run in run.directions.map { row(of: run, $0.name, $0.result) } }
        return """
            <div class="scrolls"><table>
            <thead><tr><th>Run</th><th>Message size</th><th>Direction</th><th>Sent</th><th>Received</th><th></th>\
            <th>Messages</th><th>Ping p50</th><th>p99</th><th>lost</th></tr></thead>
            <tbody>\(rows)</tbody>
            </table></div>
            """
    }

    private func row(of run: BenchRun, _ name: BenchDirection, _ result: BenchRun.DirectionResult) -> Markup {
        let cssClasses: [Int: Markup] = [2: #" class="word""#, 4: #" class="main""#]
        let texts = run.cells(name, result) + run.percentiles(absent: "–") + ["\(run.pingsLost)"]
        let cells = texts.enumerated().map { index, text -> Markup in
            "<td\(cssClasses[index] ?? "")>\(text)</td>"
        }
        return "<tr>\(cells)</tr>\n"
    }

    /// The table about datagrams, if any were sent.
    private var packets: Markup {
        guard findings.idlePackets != nil else { return "" }
        let heads = PacketTrips.headings.map { "<th>\($0)</th>" as Markup }
        let rows = findings.packetRows(absent: "–").map { cells -> Markup in
            let cells = cells.enumerated().map { index, text -> Markup in
                "<td\(index == 0 ? #" class="word""# : index == 6 ? #" class="main""# : "" as Markup)>\(text)</td>"
            }
            return "<tr>\(cells)</tr>\n"
        }
        return """
            <h2>Packets beside the link, and pings on it</h2>
            <div class="scrolls"><table>
            <thead><tr>\(heads)</tr></thead>
            <tbody>\(rows)</tbody>
            </table></div>
            """
    }

    // MARK: One run

    private func section(_ run: BenchRun) -> Markup {
        """
        <section>
        <h2>Run \(run.order.run): \(run.order.direction.rawValue), messages of \(Figures.size(Int(run.order.size)))</h2>
        \(throughput(run))\(echoes(run))\(distribution(run))</section>

        """
    }

    private func throughput(_ run: BenchRun) -> Markup {
        var series: [Plot.Series] = []
        if run.order.direction.goesUp {
            series.append(.init(name: "up: sent here", cssClass: "a wide", points: pace(run.here, \.sent)))
            series.append(
                .init(name: "up: received there", cssClass: "a-dark", points: pace(run.there, \.received)))
        }
        if run.order.direction.goesDown {
            series.append(
                .init(name: "down: sent there", cssClass: "b wide", points: pace(run.there, \.sent)))
            series.append(
                .init(name: "down: received here", cssClass: "b-dark", points: pace(run.here, \.received)))
        }
        let points = series.flatMap(\.points)
        let plot = Plot(
            title: "Throughput", xEnd: duration(of: run), yEnd: (points.map(\.y).max() ?? 1) * 1.08,
            xName: "seconds since the run began", yLabel: { Figures.rate($0) })
        return plot.lines(series, shadedTo: Double(run.order.warmUp) / 1_000)
    }

    private func duration(of run: BenchRun) -> Double {
        max(run.here.last.map { Double($0.microseconds) / 1e6 } ?? 0, 0.1)
    }

    /// The rates in bytes per second, each at the middle of its interval.
    private func pace(_ reports: [BenchProgress], _ amount: (BenchProgress) -> BenchAmount) -> [(
        x: Double, y: Double
    )] {
        var points: [(x: Double, y: Double)] = []
        var (begin, bytes) = (0.0, UInt64(0))
        for report in reports {
            let now = Double(report.microseconds) / 1e6
            guard now - begin >= Self.leastTime else { continue }
            let sum = amount(report).bytes
            points.append(((begin + now) / 2, Double(sum &- bytes) / (now - begin)))
            (begin, bytes) = (now, sum)
        }
        return points
    }

    private func echoes(_ run: BenchRun) -> Markup {
        let all = run.echoes.map { (x: Double($0.at.nanoseconds) / 1e9, y: Double($0.roundTrip.nanoseconds)) }
        guard !all.isEmpty else { return "" }
        // If there are too many points, show the longest round trip of each group.
        let group = (all.count + Self.mostDots - 1) / Self.mostDots
        let shown = stride(from: 0, to: all.count, by: group).compactMap { begin in
            all[begin..<min(begin + group, all.count)].max { $0.y < $1.y }
        }
        let idle = findings.idle.histogram.percentile(0.5).map { ("without load (median)", Double($0)) }
        let plot = Plot(
            title: "Round trip under load",
            xEnd: duration(of: run),
            yEnd: (all.map(\.y).max() ?? 1) * 1.08,
            xName: "seconds since the run began", yLabel: { Figures.shortSpan(nanoseconds: $0) })
        return plot.dots(
            .init(name: "round trip", cssClass: Plot.dotted, points: shown), level: idle,
            shadedTo: Double(run.order.warmUp) / 1_000)
    }

    private func distribution(_ run: BenchRun) -> Markup {
        let count = run.roundTrips.histogram.count
        let bars = run.roundTrips.histogram.bars(atMost: min(Self.mostBars, max(Self.fewestBars, count / 4)))
        guard !bars.isEmpty else { return "" }
        let plot = Plot(
            title: "How long the round trips took", xEnd: 1,
            yEnd: Double(bars.map(\.count).max() ?? 1) * 1.08,
            xName: "round trip (the axis is logarithmic)",
            yLabel: { Figures.fixed($0, decimals: 0) }, countsUpright: true)
        return plot.bars(
            bars.map { (Figures.shortSpan(nanoseconds: Double($0.range.lowerBound)), $0.count) },
            cssClass: Plot.dotted,
            name: "round trips")
    }
}
