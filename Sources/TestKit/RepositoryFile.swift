/// The files of a repository, for tests that compare its pages with what the code does.
package enum RepositoryFile {
    /// Returns the text of the file at `path` in the repository in whose folder Tests the calling test is.
    package static func text(of path: String, for test: String = #filePath) -> String {
        let folders = test.split(separator: "/")
        let root = folders.prefix(folders.lastIndex(of: "Tests") ?? 0).joined(separator: "/")
        return TemporaryFolder.text(of: "/\(root)/\(path)")
    }
}
