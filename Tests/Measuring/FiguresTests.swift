import Measuring
import Testing

@Suite("Measured numbers as text")
struct FiguresTests {
    @Test(arguments: [
        (Figures.span(nanoseconds: 412_300), "0.412 ms"),
        (Figures.span(nanoseconds: 12_345_678), "12.35 ms"),
        (Figures.span(nanoseconds: 999_940_000), "999.9 ms"),
        (Figures.span(nanoseconds: 999_960_000), "1.00 s"),
        (Figures.span(nanoseconds: 4_834_600_000), "4.83 s"),
        (Figures.span(nanoseconds: 9_996_000_000), "10.0 s"),
        (Figures.span(nanoseconds: 15_000_000_000), "15.0 s"), (Figures.rate(0), "0 B/s"),
        (Figures.rate(999.6), "1.00 kB/s"), (Figures.rate(117_400_000), "117 MB/s"),
        (Figures.bitRate(117_400_000), "939 Mbit/s"), (Figures.size(65_536), "64 KiB"),
        (Figures.size(1_000), "1000 B"), (Figures.size(3 << 20), "3 MiB"),
        (Figures.percent(0.05), "5 %"), (Figures.percent(1.0 / 3), "33.33 %"),
        (Figures.shortSpan(nanoseconds: 1_409_000), "1.41 ms"),
        (Figures.fixed(-0.04, decimals: 1), "0.0"), (Figures.fixed(2.05, decimals: 2), "2.05"),
        (Figures.fixed(0.000_04, decimals: 5), "0.00004"),
        (Figures.left("a", 3) + "|", "a  |"), (Figures.right("µs", 3), " µs"),
        (Figures.right("1234", 3), "1234"),
    ])
    func `Numbers are rounded for people`(_ text: String, _ expected: String) { #expect(text == expected) }

    @Test(arguments: [1e15, 1e300, .infinity, -.infinity, .nan])
    func `A number with too many digits for a decimal point is written as Swift writes it`(_ value: Double) {
        #expect(Figures.fixed(value, decimals: 5) == "\(value)")
    }

    @Test func `A stopwatch never goes backwards`() {
        let watch = Stopwatch()
        let first = watch.seconds
        #expect(first >= 0 && watch.seconds >= first)
    }
}
