// swift-tools-version: 6.0
import PackageDescription

let package = Package(
    name: "Fetch",
    platforms: [.macOS(.v15)],
    dependencies: [.package(path: "../FKDownloader")],
    targets: [
        .executableTarget(
            name: "Fetch",
            dependencies: [
                .product(name: "FKCore", package: "FKDownloader"),
                .product(name: "FKMiddleware", package: "FKDownloader"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
