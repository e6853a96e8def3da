import FourInARow
import Testing

@testable import fourinarow

struct PlainCommandTests {
    @Test("A command is understood with spaces around it and a carriage return after it")
    func commands() throws {
        let understood: [(String, PlainCommand)] = [
            ("1", .drop(Column.allCases[0])), (" 7 ", .drop(Column.allCases[6])),
            ("4\r", .drop(Column.allCases[3])),
            ("r", .rematch), ("x", .resign), ("b", .board), ("l", .tables), ("y", .yes), ("n", .no),
            ("h", .host),
            ("q", .quit), ("?", .help), ("j", .join(number: 1)), ("j 12", .join(number: 12)),
            ("w 2", .watch(number: 2)), ("m", .bot(level: 5)), ("m 9", .bot(level: 9)),
            ("c Good game!", .say(try #require(Words("Good game!")))),
        ]
        for (line, command) in understood { #expect(try PlainCommand(line) == command, "\(line)") }
    }

    @Test("An empty line is not a command", arguments: ["", "  ", "\t"])
    func empty(_ line: String) throws { #expect(try PlainCommand(line) == nil) }

    @Test(
        "Anything else is answered as not understood",
        arguments: [
            "0", "8", "44", "-1", "join", "quit", "c", "c   ", "j x", "j 0", "m 10", "y no", "²", "é", "1 2",
        ])
    func misunderstood(_ line: String) {
        let error = #expect(throws: PlainCommand.ParseError.self) { try PlainCommand(line) }
        #expect(error?.message.isEmpty == false)
    }

    @Test("Every command in the overview can be typed")
    func overview() throws {
        for line in PlainCommand.overview {
            for name in line.prefix(while: { $0 != ":" }).split(whereSeparator: {
                ", ".contains($0) || $0 == ";"
            })
            where name.count == 1 {
                let argument = name == "c" ? " words" : ""
                #expect(try PlainCommand(name + argument) != nil, "\(name)")
            }
        }
    }
}
