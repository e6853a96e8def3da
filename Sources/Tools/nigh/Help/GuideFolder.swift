import Glibc
import NighFiles

/// The folder with the guides: `share/doc/nigh` beside an installed program, `docs` in the tree that it was built in.
struct GuideFolder {
    /// A guide: a Markdown file.
    struct Guide {
        /// The name that the user types.
        let name: String
        /// The guide's first heading.
        let title: String
        /// The guide's path below the folder.
        fileprivate let path: String

        /// The page that `make docs` makes of it, below the site's folder.
        var page: String { path.replacing(".md", with: ".html") }
    }

    let path: String
    /// The pages as `make docs` built them; nil if they are not there.
    let site: String?
    let guides: [Guide]
    /// The folder of Nigh's sources in which the guides lie; nil if they are installed.
    let sources: String?

    /// The guide with a section for each check of the doctor.
    var checks: Guide? { guides.first { $0.name == "why-not-found" } }

    /// Creates the folder at `path`. Returns nil if there are no guides in it.
    init?(_ path: String, site: String, sources: String? = nil) {
        self.path = path
        self.sources = sources
        self.site = access("\(site)/index.html", R_OK) == 0 ? site : nil
        let names = ((try? OpenFolder("\(path)/guides").names()) ?? []).map { "guides/\($0.text)" }
            .filter { $0.hasSuffix(".md") }.sorted()
        guard !names.isEmpty else { return nil }
        guides = (names + ["reference/glossary.md"]).compactMap { file in
            guard let first = Self.content(of: "\(path)/\(file)")?.prefix(while: { $0 != "\n" }),
                first.hasPrefix("# ")
            else { return nil }
            let name = file.split(separator: "/").last!.dropLast(".md".count)
            return Guide(name: String(name), title: String(first.dropFirst(2)), path: file)
        }
    }

    /// The folders from the root to the one with the running program.
    private static var foldersOfThisProgram: ArraySlice<Substring> {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        let program = String(
            decoding: buffer.prefix(max(count, 0)).map(UInt8.init(bitPattern:)), as: UTF8.self)
        return program.split(separator: "/").dropLast()
    }

    /// Where the guides of the running program lie if it is installed.
    static var installedPath: String {
        foldersOfThisProgram.dropLast().reduce("") { "\($0)/\($1)" } + "/share/doc/nigh"
    }

    /// The guides of the running program; nil if there are none.
    static var ofThisProgram: GuideFolder? {
        let installed = installedPath
        if let found = GuideFolder(installed, site: "\(installed)/html") { return found }
        var folders = foldersOfThisProgram
        while !folders.isEmpty {
            let root = folders.reduce("") { "\($0)/\($1)" }
            if access("\(root)/Package.swift", R_OK) == 0,
                let found = GuideFolder("\(root)/docs", site: "\(root)/.build/docs", sources: root)
            {
                return found
            }
            folders.removeLast()
        }
        return nil
    }

    /// Returns the Markdown of a guide; nil if it cannot be read.
    func text(of guide: Guide) -> String? { Self.content(of: "\(path)/\(guide.path)") }

    private static func content(of path: String) -> String? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&chunk, 1, chunk.count, file), count > 0 { bytes += chunk.prefix(count) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
