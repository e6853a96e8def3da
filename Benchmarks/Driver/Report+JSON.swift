extension Report {
    /// The report as JSON. All names are plain ASCII, except the machine's, which is cleaned.
    var json: String {
        let cells = results.values.sorted { $0.key.order.lexicographicallyPrecedes($1.key.order) }
        let lines = cells.map { cell, values in
            var fields = [
                "\"work\": \"\(cell.work.rawValue)\"", "\"program\": \"\(cell.program)\"",
                "\"size\": \(cell.column.size)", "\"peers\": \(cell.column.peers)",
                "\"metric\": \"\(cell.metric.rawValue)\"",
                "\"values\": [\(values.map { $0.map { "\($0)" } ?? "null" }.joined(separator: ", "))]",
            ]
            for base in Program.bases where base != cell.program {
                let ratio = results.ratio(cell.work, cell.column, cell.metric, of: cell.program, to: base)
                if let ratio { fields.append("\"to \(base)\": \(ratio.median)") }
            }
            return "    {\(fields.joined(separator: ", "))}"
        }
        let judged = verdicts.map { verdict in
            let target = verdict.target
            return "    {\"work\": \"\(target.work.rawValue)\", \"size\": \(verdict.column.size), "
                + "\"peers\": \(verdict.column.peers), \"metric\": \"\(target.metric.rawValue)\", "
                + "\"program\": \"\(target.program)\", \"to\": \(target.base.map { "\"\($0)\"" } ?? "null"), "
                + "\"bound\": \(target.bound), \"reached\": \(verdict.reached.median), "
                + "\"isMet\": \(target.isMet(by: verdict.reached))}"
        }
        return """
            {
              "machine": "\(Machine.description.filter { $0.isASCII && $0 != "\"" && $0 != "\\" })",
              "month": "\(Machine.month)",
              "rounds": \(options.rounds),
              "seconds": \(options.seconds),
              "results": [
            \(lines.joined(separator: ",\n"))
              ],
              "targets": [
            \(judged.joined(separator: ",\n"))
              ]
            }

            """
    }
}
