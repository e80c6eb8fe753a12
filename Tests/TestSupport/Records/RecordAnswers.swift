/// Answers of repositories, as they were recorded by others. Members that no reader uses are left out.
package enum RecordAnswers {
    /// `https://zenodo.org/api/records/3763271`, of April 2020.
    package static let zenodo = """
        {
          "files": [
            {
              "links": {
                "self": "https://zenodo.org/api/files/deff9397-dece-4206-9964-963beb518c33/covid19.ttl"
              },
              "checksum": "md5:4abfc39f28bbca394b9201708ae27b4b",
              "bucket": "deff9397-dece-4206-9964-963beb518c33",
              "key": "covid19.ttl",
              "type": "ttl",
              "size": 9190269
            }
          ],
          "owners": [28686],
          "doi": "10.5281/zenodo.3763271",
          "links": {
            "html": "https://zenodo.org/record/3763271",
            "latest": "https://zenodo.org/api/records/3763271"
          },
          "conceptdoi": "10.5281/zenodo.3757279",
          "conceptrecid": "3757279",
          "revision": 3,
          "id": 3763271,
          "metadata": { "title": "Linked COVID-19 Data", "access_right": "open" }
        }
        """

    /// `https://zenodo.org/api/records/15052218`, of 2025, as a program has stored it: title, id and files.
    package static let zenodoNew = """
        {"title":"EPA CAMPD (Clean Air Markets Program Data) emission data: Hourly emissions for 2017 by quarter",\
        "id":15052218,"files":[{"id":"40d1f7e9-4ff7-406b-96d3-cc79fb2021a1","key":"emissions-hourly-2017-q4.csv",\
        "size":2021666549,"checksum":"md5:8c9ecb015e2bf733a5d914e44d72af93","links":\
        {"self":"https://zenodo.org/api/records/15052218/files/emissions-hourly-2017-q4.csv/content"}},\
        {"id":"d19dc518-712d-4192-bf80-293d406f5773","key":"emissions-hourly-2017-q3.csv","size":2213092805,\
        "checksum":"md5:066af9ffa5151e5823656df62df7fa3e","links":\
        {"self":"https://zenodo.org/api/records/15052218/files/emissions-hourly-2017-q3.csv/content"}}]}
        """

    /// Two files of `doi:10.70122/FK2/YAAX1R` on demo.dataverse.org, of 2023, in the form of a page of a version's files
    /// (native API, `/api/datasets/ID/versions/VERSION/files`). The folder of the second is written after the documents.
    package static let dataverse = """
        {"status": "OK", "totalCount": 2, "data": [
          {
            "label": "Test Data Alpha.tab", "restricted": true, "version": 4, "datasetVersionId": 233980,
            "dataFile": {
              "id": 2067894, "persistentId": "doi:10.70122/FK2/YAAX1R/6EDMGV", "filename": "Test Data Alpha.tab",
              "contentType": "text/tab-separated-values", "filesize": 6394,
              "originalFileFormat": "application/x-stata", "originalFormatLabel": "Stata Binary",
              "originalFileSize": 9090, "originalFileName": "Test Data Alpha.dta",
              "UNF": "UNF:6:Iav+suqRnjXHbcZOlOxueQ==", "rootDataFileId": -1,
              "md5": "faeb19ec96a34523e4fd0defea0cebda",
              "checksum": { "type": "MD5", "value": "faeb19ec96a34523e4fd0defea0cebda" }, "tabularData": true
            }
          },
          {
            "label": "Test Document 1.pdf", "restricted": false, "directoryLabel": "docs", "version": 1,
            "dataFile": {
              "id": 2067893, "filename": "Test Document 1.pdf", "contentType": "application/pdf", "filesize": 40226,
              "rootDataFileId": -1, "md5": "4b2680b30fda5d346d6876b4a11986a2",
              "checksum": { "type": "MD5", "value": "4b2680b30fda5d346d6876b4a11986a2" }, "tabularData": false
            }
          }
        ]}
        """

    /// `https://api.datacite.org/dois/10.5281/zenodo.3763271`, of April 2020, with the URL of a file: Zenodo gives none.
    package static let dataCite = """
        {"data":{"id":"10.5281/zenodo.3763271","type":"dois","attributes":{"doi":"10.5281/zenodo.3763271","prefix":"10.5281",\
        "identifiers":[{"identifier":"https://zenodo.org/record/3763271","identifierType":"URL"}],"publisher":"Zenodo",\
        "sizes":[],"formats":[],"url":"https://zenodo.org/record/3763271","contentUrl":["https://example.org/covid19.ttl"]}}}
        """

    /// The example `rainfall-1.2.0` of the specification of RO-Crate, with size and digest as its page on data entities has
    /// them, and a file on the web.
    package static let crate = """
        { "@context": "https://w3id.org/ro/crate/1.2-DRAFT/context",
          "@graph": [
          {
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.2-DRAFT"},
            "about": {"@id": "./"}
          },
          {
            "@id": "./",
            "@type": "Dataset",
            "name": "Example dataset for RO-Crate specification",
            "publisher": {"@id": "https://ror.org/04dkp1p98"},
            "hasPart": [ {"@id": "data.csv"}, {"@id": "https://example.org/r.xml"} ]
          },
          {
            "@id": "sub/data%20a.csv",
            "@type": ["File", "SoftwareSourceCode"],
            "name": "Rainfall data for Katoomba, NSW Australia February 2022",
            "contentSize": "5",
            "sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
            "encodingFormat": "text/csv"
          },
          { "@id": "https://example.org/r.xml", "@type": "File", "contentSize": "26.9 MB" },
          { "@id": "https://ror.org/04dkp1p98", "@type": "Organization", "url": "http://www.bom.gov.au/" }
         ]
        }
        """

    /// `datasets/1.0/titanic/metadata.json` of mlcommons/croissant without its record sets, and with a set of files.
    package static let croissant = """
        {
          "@context": { "@vocab": "https://schema.org/", "cr": "http://mlcommons.org/croissant/" },
          "@type": "sc:Dataset",
          "name": "Titanic",
          "conformsTo": "http://mlcommons.org/croissant/1.0",
          "version": "1.0.0",
          "distribution": [
            {
              "@type": "cr:FileObject",
              "@id": "passengers.csv",
              "name": "passengers.csv",
              "contentSize": "117743 B",
              "contentUrl": "https://www.openml.org/data/get_csv/16826755/phpMYEkMl",
              "encodingFormat": "text/csv",
              "sha256": "c617db2c7470716250f6f001be51304c76bcc8815527ab8bae734bdca0735737"
            },
            {
              "@type": "cr:FileObject",
              "@id": "genders.csv",
              "name": "genders.csv",
              "contentSize": "117743 B",
              "contentUrl": "data/genders.csv",
              "encodingFormat": "text/csv",
              "sha256": "3b0d1ce9ffb5224626105c50a0f9e5fbf941bcbcd913e5567aba25936333c3b8"
            },
            { "@type": "cr:FileObject", "@id": "repo", "name": "repo", "contentUrl": "https://huggingface.co/datasets/a/b",
              "encodingFormat": "git+https", "sha256": "https://github.com/mlcommons/croissant/issues/80" },
            { "@type": "cr:FileSet", "@id": "images", "containedIn": { "@id": "train.zip" }, "includes": "*.jpg" }
          ]
        }
        """

    /// A link set, written after RFC 9264 and the FAIR Signposting profile.
    package static let linkset = """
        {"linkset": [
          {"anchor": "https://example.org/page/7507",
           "cite-as": [{"href": "https://doi.org/10.5061/dryad.5d23f"}],
           "item": [{"href": "https://example.org/file/7507/1", "type": "application/pdf"}, {"href": "file/2"}]},
          {"anchor": "https://example.org/file/7507/1", "collection": [{"href": "https://example.org/page/7507"}]}
        ]}
        """
}
