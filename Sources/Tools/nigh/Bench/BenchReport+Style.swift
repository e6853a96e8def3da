extension BenchReport {
    /// The style sheet of the page: light and dark, on a screen and on paper.
    static let style: Markup = """
        :root { --ground: #ffffff; --ink: #1b1f24; --faint: #59636e; --rule: #d8dde3; --shade: #f1f3f6;
            --a: #7fb0ee; --a-dark: #0b57b7; --b: #f2b27a; --b-dark: #b34b00; --c: #6d4bb3; --level: #1a7f52; }
        @media (prefers-color-scheme: dark) {
            :root { --ground: #14171b; --ink: #e8ebef; --faint: #9aa4af; --rule: #343b43; --shade: #1e2329;
                --a: #2d62a8; --a-dark: #86bcff; --b: #8f5420; --b-dark: #ffb374; --c: #b79cf2; --level: #59c794; }
        }
        * { box-sizing: border-box; }
        body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
        main { max-width: 880px; margin: 0 auto; padding: 32px 24px 48px; }
        h1 { font-size: 28px; line-height: 1.2; margin: 0 0 4px; overflow-wrap: anywhere; }
        h2 { font-size: 20px; margin: 40px 0 12px; }
        .lead, footer, figcaption, dt { color: var(--faint); }
        .lead { margin: 0 0 24px; }
        footer { margin-top: 40px; padding-top: 12px; border-top: 1px solid var(--rule); font-size: 14px; }
        dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 20px; margin: 0; }
        dd { margin: 0; overflow-wrap: anywhere; }
        .scrolls { overflow-x: auto; }
        table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
        th, td { padding: 5px 6px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule); }
        th { font-weight: 600; color: var(--faint); }
        th:nth-child(3), td.word { text-align: left; }
        td.main { font-weight: 700; }
        figure { margin: 0 0 24px; break-inside: avoid; }
        figcaption { font-weight: 600; }
        .legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 20px; padding: 0; margin: 2px 0 4px; font-size: 14px; }
        .key { width: 26px; height: 8px; margin-right: 6px; vertical-align: middle; }
        .plot { display: block; width: 100%; height: auto; }
        .plot text { font: 12px system-ui, sans-serif; fill: var(--faint); font-variant-numeric: tabular-nums; }
        .axis line { stroke: var(--rule); stroke-width: 1; }
        .shade { fill: var(--shade); }
        .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
        .wide.line { stroke-width: 6; }
        .line.a { stroke: var(--a); } .line.a-dark { stroke: var(--a-dark); }
        .line.b { stroke: var(--b); } .line.b-dark { stroke: var(--b-dark); }
        .line.c { stroke: var(--c); }
        .level, .line.level { stroke: var(--level); stroke-width: 1.5; stroke-dasharray: 6 4; }
        .dots.c, .bars.c { fill: var(--c); }
        @media print {
            :root { --ground: #ffffff; --ink: #000000; --faint: #444444; --rule: #cccccc; --shade: #f1f3f6;
                --a: #7fb0ee; --a-dark: #0b57b7; --b: #f2b27a; --b-dark: #b34b00; --c: #6d4bb3; --level: #1a7f52; }
            main { max-width: none; padding: 0; }
            body { font-size: 11pt; print-color-adjust: exact; }
            h2 { break-after: avoid; }
            .scrolls { overflow: visible; }
            table { font-size: 7.5pt; }
            th, td { padding: 3px 4px; }
        }
        """
}
