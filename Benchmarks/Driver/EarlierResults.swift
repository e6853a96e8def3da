import FoundationEssentials
import Glibc

/// The results that an earlier run has left in `results.json`.
struct EarlierResults: Decodable {
    struct Row: Decodable {
        let work: String
        let program: String
        let size: Int
        let peers: Int
        let metric: String
        /// The values of each round; nil in rounds without a result.
        let values: [Double?]
    }

    let machine: String
    let month: String
    let results: [Row]

    /// Reads a file. Fails with a sentence for people.
    static func read(_ path: String) throws(UnreadableResults) -> EarlierResults {
        guard let bytes = try? Data(contentsOf: URL(filePath: path)) else {
            throw UnreadableResults(description: "\(path) cannot be read")
        }
        return try read(bytes, of: path)
    }

    static func read(_ bytes: Data, of path: String) throws(UnreadableResults) -> EarlierResults {
        do {
            return try JSONDecoder().decode(EarlierResults.self, from: bytes)
        } catch {
            throw UnreadableResults(
                description: "\(path) is no result of `make bench`, which writes results.json")
        }
    }

    /// The values of each row. Rows that this version does not know are left out.
    var values: [Results.Cell: [Double?]] {
        let cells = results.compactMap { row -> (Results.Cell, [Double?])? in
            guard let work = Work(rawValue: row.work), let metric = Metric(rawValue: row.metric) else {
                return nil
            }
            let column = Work.Column(size: row.size, peers: row.peers)
            return (
                Results.Cell(work: work, column: column, metric: metric, program: row.program), row.values
            )
        }
        return Dictionary(cells) { _, last in last }
    }
}

/// Why a file of earlier results cannot be used.
struct UnreadableResults: Error, CustomStringConvertible {
    let description: String
}
