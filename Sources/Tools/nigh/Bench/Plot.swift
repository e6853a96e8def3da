import Measuring

/// A chart with two axes, as SVG: lines, dots or bars over a horizontal axis.
struct Plot: Sendable {
    /// One series of points; the page's style sheet gives it its colour.
    struct Series: Sendable {
        let name: String
        /// The CSS class.
        let cssClass: String
        let points: [(x: Double, y: Double)]
    }

    let title: String
    let width = 720.0
    let height = 260.0
    private let left = 78.0
    private let right = 16.0
    private let top = 12.0
    private let bottom = 40.0

    let xEnd: Double
    let yEnd: Double
    let xName: String
    let yLabel: @Sendable (Double) -> String
    /// Whether the vertical axis shows counts, so that its ticks are whole numbers.
    var countsUpright = false

    private var plotWidth: Double { width - left - right }
    private var plotHeight: Double { height - top - bottom }

    private func x(_ value: Double) -> Double { left + plotWidth * min(max(value / max(xEnd, 1e-12), 0), 1) }
    private func y(_ value: Double) -> Double {
        top + plotHeight * (1 - min(max(value / max(yEnd, 1e-12), 0), 1))
    }

    /// The CSS class of series that are drawn as dots.
    static let dotted = "c"

    private static func number(_ value: Double) -> String { Figures.fixed(value, decimals: 1) }

    /// Tick positions up to `end`, in steps of 1, 2 or 5 times a power of ten; about five of them.
    static func ticks(to end: Double, areWhole: Bool = false) -> [Double] {
        guard end > 0, end.isFinite else { return [0] }
        var power = 1.0
        while power * 10 <= end { power *= 10 }
        while power > end { power /= 10 }
        let steps = [0.2, 0.5, 1, 2].map { $0 * power }.filter { !areWhole || $0 >= 1 }
        let step = steps.first { end / $0 < 6 } ?? max(2 * power, 1)
        return (0...Int((end / step).rounded(.down))).map { Double($0) * step }
    }

    /// Draws lines, with the warm-up shaded.
    func lines(_ series: [Series], shadedTo shade: Double) -> Markup {
        let lines = series.map { series -> Markup in
            let points = series.points.map { "\(Self.number(x($0.x))),\(Self.number(y($0.y)))" }
                .joined(separator: " ")
            return
                #"<polyline class="line \#(series.cssClass)" data-series="\#(series.name)" data-count="\#(series.points.count)" points="\#(points)"/>"#
        }
        return drawing(
            [shading(to: shade), yAxis, xAxis] + lines,
            legend: series.map { ($0.name, $0.cssClass) })
    }

    /// Draws a dot for each point, and a horizontal line at `level`.
    func dots(_ series: Series, level: (name: String, at: Double)?, shadedTo shade: Double) -> Markup {
        let dots = series.points.map { point -> Markup in
            #"<circle cx="\#(Self.number(x(point.x)))" cy="\#(Self.number(y(point.y)))" r="3"/>"#
        }
        var parts: [Markup] = [shading(to: shade), yAxis, xAxis]
        var legend = [(series.name, series.cssClass)]
        if let level {
            let height = Self.number(y(level.at))
            parts.append(
                #"<line class="level" x1="\#(left)" x2="\#(width - right)" y1="\#(height)" y2="\#(height)"/>"#
            )
            legend.append((level.name, "level"))
        }
        parts.append(
            #"<g class="dots \#(series.cssClass)" data-series="\#(series.name)" data-count="\#(series.points.count)">\#(dots)</g>"#
        )
        return drawing(parts, legend: legend)
    }

    /// Draws a bar for each entry, with labels below some of them.
    func bars(_ bars: [(label: String, count: Int)], cssClass: String, name: String) -> Markup {
        let step = plotWidth / Double(max(bars.count, 1))
        let every = max(1, (bars.count + 7) / 8)
        let drawn = bars.enumerated().map { index, bar -> Markup in
            let start = left + Double(index) * step
            let barTop = y(Double(bar.count))
            return
                #"<rect x="\#(Self.number(start + 1))" y="\#(Self.number(barTop))" width="\#(Self.number(max(step - 2, 1)))" height="\#(Self.number(top + plotHeight - barTop))"><title>\#(bar.label): \#(bar.count)</title></rect>"#
        }
        // A label that begins too far to the right would be cut off.
        let labels = bars.enumerated().filter {
            $0.offset.isMultiple(of: every) && Double($0.offset) * step < plotWidth - 40
        }.map {
            index, bar -> Markup in
            let place = Self.number(left + Double(index) * step)
            return #"<text x="\#(place)" y="\#(height - bottom + 16)">\#(bar.label)</text>"#
        }
        return drawing(
            [yAxis, #"<g class="axis">\#(labels)</g>"#, xCaption]
                + [
                    #"<g class="bars \#(cssClass)" data-series="\#(name)" data-count="\#(bars.count)">\#(drawn)</g>"#
                ],
            legend: [])
    }

    private var xCaption: Markup {
        #"<text class="caption" x="\#(left + plotWidth / 2)" y="\#(height - 4)" text-anchor="middle">\#(xName)</text>"#
    }

    private var xAxis: Markup {
        let ticks = Self.ticks(to: xEnd).map { tick -> Markup in
            #"<text x="\#(Self.number(x(tick)))" y="\#(height - bottom + 16)" text-anchor="middle">\#(Figures.fixed(tick, decimals: tick == tick.rounded() ? 0 : 1))</text>"#
        }
        return #"<g class="axis">\#(ticks)</g>\#(xCaption)"#
    }

    private var yAxis: Markup {
        let ticks = Self.ticks(to: yEnd, areWhole: countsUpright).map { tick -> Markup in
            let place = Self.number(y(tick))
            return
                #"<line x1="\#(left)" x2="\#(width - right)" y1="\#(place)" y2="\#(place)"/><text x="\#(left - 8)" y="\#(Self.number(y(tick) + 4))" text-anchor="end">\#(yLabel(tick))</text>"#
        }
        return #"<g class="axis">\#(ticks)</g>"#
    }

    private func shading(to end: Double) -> Markup {
        guard end > 0 else { return "" }
        return
            #"<rect class="shade" x="\#(left)" y="\#(top)" width="\#(Self.number(x(end) - left))" height="\#(plotHeight)"><title>warm-up</title></rect>"#
    }

    private func drawing(_ parts: [Markup], legend: [(name: String, cssClass: String)]) -> Markup {
        let entries = legend.map { entry -> Markup in
            let key: Markup =
                entry.cssClass == Self.dotted
                ? #"<g class="dots \#(entry.cssClass)"><circle cx="13" cy="4" r="3"/></g>"#
                : #"<line class="line \#(entry.cssClass)" x1="1" x2="25" y1="4" y2="4"/>"#
            return
                #"<li><svg class="key" viewBox="0 0 26 8" aria-hidden="true">\#(key)</svg>\#(entry.name)</li>"#
        }
        let key: Markup = entries.isEmpty ? "" : #"<ul class="legend">\#(entries)</ul>"#
        return
            #"<figure><figcaption>\#(title)</figcaption>\#(key)<svg class="plot" role="img" aria-label="\#(title)" viewBox="0 0 \#(width) \#(height)">\#(parts)</svg></figure>"#
            + "\n"
    }
}
